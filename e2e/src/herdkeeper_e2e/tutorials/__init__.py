"""Executable tutorials: `page` reads them, `output` compares, `shell` runs."""
