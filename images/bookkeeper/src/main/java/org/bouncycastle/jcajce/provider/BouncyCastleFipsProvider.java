package org.bouncycastle.jcajce.provider;

import java.security.Provider;

/**
 * Stands in for Bouncy Castle's provider, and provides nothing. BookKeeper's TLS (TLSContextFactory of 4.16 and 4.18) loads a provider of
 * this name and uses nothing of it: certificates, keys and connections are Java's. The real one tests itself when it is loaded, which takes
 * two CPU seconds of each start.
 */
public final class BouncyCastleFipsProvider extends Provider {

    private static final long serialVersionUID = 1L;

    public BouncyCastleFipsProvider() {
        super("BCFIPS", "0", "nothing: stands in for a provider that BookKeeper loads and does not use");
    }
}
