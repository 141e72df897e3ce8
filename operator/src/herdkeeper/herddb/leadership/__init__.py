"""Decides who leads each tablespace, and how leaderships move. Pure."""
