package io.herdkeeper.node.nemesis;

import io.netty.util.ReferenceCounted;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.apache.bookkeeper.client.BKException;
import org.apache.bookkeeper.client.BookKeeper;
import org.apache.bookkeeper.client.api.LedgerMetadata;
import org.apache.bookkeeper.meta.CleanupLedgerManager;
import org.apache.bookkeeper.meta.LedgerIdGenerator;
import org.apache.bookkeeper.meta.LedgerManager;
import org.apache.bookkeeper.proto.BookieClient;
import org.apache.bookkeeper.proto.BookieProtocol;
import org.apache.bookkeeper.proto.BookkeeperInternalCallbacks.GenericCallback;

/**
 * The requests of a BookKeeper client to bookies and to its metadata, each of which is a call of a node's process.
 *
 * <p>Whatever the client does (write, fence, recover, read, tail, change an ensemble) comes down to these. Its worker threads are never
 * held, only a request or an answer is.
 */
final class BookKeeperRim {

    private final Life life;
    private final BookKeeper client;

    private BookKeeperRim(Life life, BookKeeper client) {
        this.life = life;
        this.client = client;
    }

    /** Has all requests of a client be calls of a process from now on. */
    static void into(BookKeeper client, Life life) {
        BookKeeperRim rim = new BookKeeperRim(life, client);
        replace(client, BookKeeper.class, "bookieClient", BookieClient.class, rim::bookies);
        replace(client, BookKeeper.class, "ledgerIdGenerator", LedgerIdGenerator.class, rim::ids);
        replace(client.getLedgerManager(), CleanupLedgerManager.class, "underlying", LedgerManager.class, rim::metadata);
    }

    private static <T> void replace(Object owner, Class<?> declared, String name, Class<T> type, Function<T, T> other) {
        try {
            Field field = declared.getDeclaredField(name);
            field.setAccessible(true);
            field.set(owner, other.apply(type.cast(field.get(owner))));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("BookKeeper's client of this version has no " + name + " in " + declared, error);
        }
    }

    private BookieClient bookies(BookieClient real) {
        return proxy(BookieClient.class, (method, arguments) -> {
            int callback = callback(arguments);
            Call call = callback < 0 ? null : call(method, arguments);
            if (call == null) {
                return invoke(method, real, arguments);
            }
            keep(arguments, true);
            life.begin(call, visit -> {
                try {
                    send(real, method, arguments, callback, visit);
                } finally {
                    keep(arguments, false);
                }
            });
            return null;
        });
    }

    private void send(BookieClient real, Method method, Object[] arguments, int callback, Life.Visit visit) {
        if (visit.fails()) {
            answer(arguments, callback, failure(arguments, BKException.Code.TimeoutException));
            return;
        }
        Object[] sent = arguments.clone();
        Class<?> type = method.getParameterTypes()[callback];
        sent[callback] = proxy(type, new Once((told, result) -> {
            keep(result, true);
            visit.later(Moment.AFTER, lost -> {
                // in the thread in which an answer comes where nothing is held, since the client's state belongs to that one
                Object[] given = lost ? failure(arguments, BKException.Code.TimeoutException, told.getParameterTypes()) : result;
                answer(arguments, callback, given);
                keep(result, false);
            });
            return null;
        }));
        invoke(method, real, sent);
    }

    /** Tells the client in its own thread for that ledger. */
    private void answer(Object[] arguments, int callback, Object[] result) {
        keep(result, true);
        client.getMainWorkerPool().executeOrdered(((Long) arguments[1]).longValue(), () -> {
            try {
                Object waiting = arguments[callback];
                invoke(onlyMethod(waiting.getClass(), result.length), waiting, result);
            } finally {
                keep(result, false);
            }
        });
    }

    private static Object[] failure(Object[] arguments, int code) {
        int callback = callback(arguments);
        return failure(arguments, code, onlyMethod(arguments[callback].getClass(), -1).getParameterTypes());
    }

    /** An answer of the callback's kind: its code, what was asked, and nothing else. */
    private static Object[] failure(Object[] arguments, int code, Class<?>[] types) {
        Object[] result = new Object[types.length];
        result[0] = code;
        int number = 1; // in requests, too, the ledger comes before the entry
        List<Object> numbers = Arrays.stream(arguments).filter(Long.class::isInstance).toList();
        for (int place = 1; place < types.length; place++) {
            if (types[place] == long.class) {
                result[place] = numbers.get(number - 1);
                number++;
            } else if (place == types.length - 1) {
                result[place] = arguments[callback(arguments) + 1];
            } else {
                Class<?> wanted = types[place];
                result[place] = ReferenceCounted.class.isAssignableFrom(wanted) ? null
                        : Arrays.stream(arguments).filter(wanted::isInstance).findFirst().orElse(null);
            }
        }
        return result;
    }

    private static int callback(Object[] arguments) {
        for (int place = 0; arguments != null && place < arguments.length; place++) {
            if (arguments[place] != null && interfaceOf(arguments[place].getClass()) != null) {
                return place;
            }
        }
        return -1;
    }

    private static Class<?> interfaceOf(Class<?> type) {
        for (Class<?> each = type; each != null; each = each.getSuperclass()) {
            for (Class<?> one : each.getInterfaces()) {
                if (one.getName().startsWith("org.apache.bookkeeper.proto.BookkeeperInternalCallbacks$")
                        && one.getSimpleName().endsWith("Callback")) {
                    return one;
                }
            }
        }
        return null;
    }

    private static Method onlyMethod(Class<?> callback, int parameters) {
        Class<?> type = interfaceOf(callback);
        return Arrays.stream(type.getMethods()).filter(method -> method.getReturnType() == void.class && !method.isDefault()
                && (parameters < 0 || method.getParameterCount() == parameters)).findFirst().orElseThrow();
    }

    private static void keep(Object[] values, boolean longer) {
        for (Object value : values) {
            if (value instanceof ReferenceCounted counted) {
                if (longer) {
                    counted.retain();
                } else {
                    counted.release();
                }
            }
        }
    }

    private Call call(Method method, Object[] arguments) {
        List<Long> numbers = new ArrayList<>();
        int options = 0;
        for (Object argument : arguments) {
            if (argument instanceof Long number) {
                numbers.add(number);
            } else if (argument instanceof Integer flags) {
                options = flags;
            }
        }
        String ledger = " ledger " + life.ledger(numbers.get(0));
        return switch (method.getName()) {
            case "addEntry" -> new Call(Kind.BOOKKEEPER,
                    ((options & BookieProtocol.FLAG_RECOVERY_ADD) != 0 ? "recovery add" : "add") + ledger + " entry " + numbers.get(1), true);
            case "readEntry" -> (options & BookieProtocol.FLAG_DO_FENCING) != 0
                    ? new Call(Kind.BOOKKEEPER, "fence" + ledger, true)
                    : new Call(Kind.BOOKKEEPER, "read" + ledger + " entry " + numbers.get(1), false);
            case "readEntryWaitForLACUpdate" -> new Call(Kind.BOOKKEEPER, "tail" + ledger, false, true);
            case "readLac" -> new Call(Kind.BOOKKEEPER, "ask for LAC" + ledger, false, true);
            default -> new Call(Kind.BOOKKEEPER, method.getName() + ledger, true);
        };
    }

    private LedgerIdGenerator ids(LedgerIdGenerator real) {
        return proxy(LedgerIdGenerator.class, (method, arguments) -> {
            if (!method.getName().equals("generateLedgerId")) {
                return invoke(method, real, arguments);
            }
            @SuppressWarnings("unchecked")
            GenericCallback<Long> waiting = (GenericCallback<Long>) arguments[0];
            life.begin(new Call(Kind.BOOKKEEPER, "take a ledger id", true), visit -> {
                if (visit.fails()) {
                    waiting.operationComplete(BKException.Code.ZKException, null);
                    return;
                }
                real.generateLedgerId((code, id) -> visit.later(Moment.AFTER,
                        lost -> waiting.operationComplete(lost ? BKException.Code.ZKException : code, lost ? null : id)));
            });
            return null;
        });
    }

    private LedgerManager metadata(LedgerManager real) {
        return proxy(LedgerManager.class, (method, arguments) -> {
            if (method.getReturnType() != CompletableFuture.class) {
                return invoke(method, real, arguments);
            }
            boolean changes = !method.getName().startsWith("read");
            Call call = new Call(Kind.BOOKKEEPER, method.getName() + " ledger " + life.ledger((Long) arguments[0]) + state(arguments), changes);
            CompletableFuture<Object> answer = new CompletableFuture<>();
            life.begin(call, visit -> {
                if (visit.fails()) {
                    answer.completeExceptionally(new BKException.ZKException());
                    return;
                }
                ((CompletableFuture<?>) invoke(method, real, arguments)).whenComplete((result, error) -> visit.later(Moment.AFTER, lost -> {
                    if (lost) {
                        answer.completeExceptionally(lostAnswer(method.getName()));
                    } else if (error != null) {
                        answer.completeExceptionally(error);
                    } else {
                        answer.complete(result);
                    }
                }));
            });
            return answer;
        });
    }

    /** BookKeeper's client asks again when the connection is lost, and meets what it has done itself. */
    private static BKException lostAnswer(String method) {
        return switch (method) {
            case "writeLedgerMetadata" -> new BKException.BKMetadataVersionException();
            case "createLedgerMetadata" -> new BKException.BKLedgerExistException();
            case "removeLedgerMetadata" -> new BKException.BKNoSuchLedgerExistsOnMetadataServerException();
            default -> new BKException.ZKException();
        };
    }

    private static String state(Object[] arguments) {
        return Arrays.stream(arguments).filter(LedgerMetadata.class::isInstance).map(LedgerMetadata.class::cast)
                .map(metadata -> " " + metadata.getState()).findFirst().orElse("");
    }

    /** What a call of a proxy does. */
    @FunctionalInterface
    private interface Handler {

        Object handle(Method method, Object[] arguments);
    }

    /** Handles one call, and forgets then: Netty keeps what waited for an answer, to use it again, and would keep each node of each run. */
    private static final class Once implements Handler {

        private final AtomicReference<Handler> waiting;

        Once(Handler handler) {
            waiting = new AtomicReference<>(handler);
        }

        @Override
        public Object handle(Method method, Object[] arguments) {
            return waiting.getAndSet(null).handle(method, arguments);
        }
    }

    private static <T> T proxy(Class<T> type, Handler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[]{type}, (proxy, method, arguments) ->
                method.getDeclaringClass() == Object.class ? switch (method.getName()) {
                    case "equals" -> proxy == arguments[0];
                    case "hashCode" -> System.identityHashCode(proxy);
                    default -> type.getSimpleName();
                } : handler.handle(method, arguments)));
    }

    private static Object invoke(Method method, Object target, Object[] arguments) {
        try {
            method.setAccessible(true);
            return method.invoke(target, arguments);
        } catch (InvocationTargetException error) {
            if (error.getCause() instanceof RuntimeException unchecked) {
                throw unchecked;
            }
            throw new IllegalStateException(error.getCause());
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }
}
