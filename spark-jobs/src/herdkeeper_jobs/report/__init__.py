"""The parts of all reports for people: one self-contained HTML file with plots. Pure."""
