"""What all reports for people are made of: one HTML file that needs nothing else, with plots. Pure."""
