package io.herdkeeper.node.testing;

import herddb.core.DBManager;
import herddb.sql.AbstractSQLPlanner;
import herddb.sql.TranslatedQuery;
import java.util.List;
import java.util.function.Function;
import java.util.function.Supplier;

/** A planner before a node's own: a test says what it does instead of planning, before it or with the plan. */
public final class InterposedPlanner extends AbstractSQLPlanner {

    private final AbstractSQLPlanner own;
    private final Function<Supplier<TranslatedQuery>, TranslatedQuery> planning;

    /** @param planning is given the node's own planner for this statement */
    public InterposedPlanner(DBManager manager, Function<Supplier<TranslatedQuery>, TranslatedQuery> planning) {
        super(manager);
        this.own = manager.getPlanner();
        this.planning = planning;
    }

    @Override
    public TranslatedQuery translate(String tablespace, String query, List<Object> parameters, boolean scan, boolean allowCache,
            boolean returnValues, int maxRows) {
        return planning.apply(() -> own.translate(tablespace, query, parameters, scan, allowCache, returnValues, maxRows));
    }

    @Override
    public void clearCache() {
        own.clearCache();
    }

    @Override
    public long getCacheHits() {
        return own.getCacheHits();
    }

    @Override
    public long getCacheMisses() {
        return own.getCacheMisses();
    }

    @Override
    public long getCacheSize() {
        return own.getCacheSize();
    }
}
