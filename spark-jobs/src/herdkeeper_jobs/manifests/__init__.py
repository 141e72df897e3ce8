"""What lies at a destination beside a checkpoint's files: its manifest."""
