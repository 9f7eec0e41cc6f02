"""The report as one HTML file that needs nothing else, and the parts of it that the viewer shows too."""
