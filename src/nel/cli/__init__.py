"""The command line: parse, call one function, print, give an exit code."""
