package io.herdkeeper.node.log;

import herddb.model.RecordTooBigException;
import herddb.utils.Bytes;

/**
 * How big a row may be, so that each index of its table can hold it.
 *
 * <p>HerdDB compares a row with a page. But the page of an index holds the key of the row and the indexed columns, which may have the key
 * once more: behind the log, HerdDB throws where they don't fit. And a node of its tree of keys is split into halves of a page. If a single
 * key is larger than a half, one of them is empty, and splitting never ends. No node could replay such an INSERT.
 */
public final class RowSizes {

    /** More than HerdDB adds for a row, for an entry of an index, and for a node of the tree. */
    private static final int MARGIN = 1024;
    private static final int SHOWN = 100;

    private RowSizes() {
    }

    /** Refuses a new row, or a new version of a row. */
    public static void refuseTooBig(Bytes key, int value, long page) {
        long size = 2L * key.getLength() + value + MARGIN;
        if (size > page) {
            String text = key.toString();
            throw new RecordTooBigException("record " + (text.length() <= SHOWN ? text : text.substring(0, SHOWN) + "…")
                    + " is too big: with its key twice, its size is " + size + ", and may be " + page);
        }
    }
}
