"""What makes a release: the generated files of the chart, and the files that people install from."""
