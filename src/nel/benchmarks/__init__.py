"""The built-in benchmarks, one small file each; `nel.environments.catalog` lists them."""
