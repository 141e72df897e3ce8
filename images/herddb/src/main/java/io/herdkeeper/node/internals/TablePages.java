package io.herdkeeper.node.internals;

import herddb.core.Page;
import herddb.core.PageReplacementPolicy;
import herddb.core.TableManager;
import herddb.index.brin.OtherPages;
import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;

/**
 * The memory of tables, of which a closed one has no rows any more.
 *
 * <p>HerdDB remembers pages that a table has had, and with them the table, also when it is closed; and a closed table has all of its pages. So a
 * node that becomes the leader had the rows twice in its memory.
 */
final class TablePages extends OtherPages {

    private final Predicate<TableManager> closed;

    /** Does all else as the memory of HerdDB does. */
    TablePages(PageReplacementPolicy pages, Predicate<TableManager> closed) {
        super(pages);
        this.closed = closed;
    }

    /** A table that closes gives all its pages back at once. */
    @Override
    public <P extends Page<?>> void remove(Collection<P> removed) {
        List<P> given = List.copyOf(removed);
        super.remove(given);
        for (P page : given) {
            if (page.owner instanceof TableManager table && closed.test(table)) {
                table.getLoadedPages().clear();
                return; // all are of one table
            }
        }
    }
}
