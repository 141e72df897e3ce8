package herddb.index.brin;

import herddb.core.Page;
import herddb.core.PageReplacementPolicy;
import herddb.index.brin.BlockRangeIndex.Block;
import herddb.utils.SizeAwareObject;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * The memory of indexes, which mends the blocks of an index that a checkpoint puts together.
 *
 * <p>A value with many rows is in several blocks of an index. When the later one of two small blocks has no row of the value any more that
 * it begins with, HerdDB (0.29, {@code BlockRangeIndex.merge}) adds the rows of the earlier block to themselves. A query by the index then has
 * each of them twice, and once a row is gone, a unique index still has its value.
 *
 * <p>It gives the memory of the later block back while it holds both.
 */
public final class MergedBlocks extends OtherPages {

    /** Does all else as the memory of HerdDB does. */
    public MergedBlocks(PageReplacementPolicy pages) {
        super(pages);
    }

    @Override
    public boolean remove(Page<?> page) {
        if (page.owner instanceof Block<?, ?> block && block.isDetached()) {
            mend(block);
        }
        return super.remove(page);
    }

    private static <K extends Comparable<K> & SizeAwareObject, V extends SizeAwareObject> void mend(Block<K, V> later) {
        Block<K, V> earlier = later.index.getBlocks().lowerEntry(later.key).getValue();
        List<V> rows = earlier.values.get(later.key.minKey);
        Set<V> once = rows == null ? Set.of() : new LinkedHashSet<>(rows);
        if (rows != null && once.size() < rows.size()) {
            rows.clear();
            rows.addAll(once);
        }
    }
}
