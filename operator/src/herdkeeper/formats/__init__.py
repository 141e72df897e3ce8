"""Pure codecs of the bytes that BookKeeper and HerdDB write: metadata, entries, digests, znodes."""
