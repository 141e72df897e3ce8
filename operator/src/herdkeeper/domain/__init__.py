"""Pure knowledge of the field: names, quorum arithmetic, validation, LSN order, reasons."""
