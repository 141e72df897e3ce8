package herddb.index.brin;

import herddb.core.Page;
import herddb.core.PageReplacementPolicy;
import java.util.Collection;

/** Does all that a memory of pages is asked for as another one does it. */
public abstract class OtherPages implements PageReplacementPolicy {

    private final PageReplacementPolicy pages;

    protected OtherPages(PageReplacementPolicy pages) {
        this.pages = pages;
    }

    @Override
    public boolean remove(Page<?> page) {
        return pages.remove(page);
    }

    @Override
    public <P extends Page<?>> void remove(Collection<P> removed) {
        pages.remove(removed);
    }

    @Override
    public void pageHit(Page<?> page) {
        pages.pageHit(page);
    }

    @Override
    public Page.Metadata add(Page<?> page) {
        return pages.add(page);
    }

    @Override
    public int size() {
        return pages.size();
    }

    @Override
    public int capacity() {
        return pages.capacity();
    }

    @Override
    public void clear() {
        pages.clear();
    }
}
