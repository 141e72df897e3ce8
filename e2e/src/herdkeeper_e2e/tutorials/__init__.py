"""Tutorials that a test carries out as they stand there: `page` reads them, `output` compares, `shell` runs."""
