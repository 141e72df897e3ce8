"""An open stream to each SQL node. Its end shows that the process died, a second or more before Kubernetes does.

A node sends a line each second (images/herddb, `GET /alive`). A stream decides nothing: it requeues the node's cluster, and stores the time
and the content of the node's last report. One thread follows all of them: a thread each would cost a fleet twice the CPU.
"""

from __future__ import annotations

import asyncio
import http.client
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing

import structlog

from herdkeeper.clients.bounded_http import LineStream, follow
from herdkeeper.clients.kubernetes import KubernetesReader
from herdkeeper.clients.liveness import NodeLiveness
from herdkeeper.engine.key import Key
from herdkeeper.herddb.observe.address import NodePort, port_of_pod, with_authorities
from herdkeeper.protocol.self_report import SelfReport, decode_line
from herdkeeper.shared.names import HerdDBNames, ObjectKey
from herdkeeper.shared.objects import Json, ip_address
from herdkeeper.shared.unknown import Unknown

SILENCE_SECONDS = 2.0
"""After this silence the node's cluster is requeued, too: the node may hang, or be cut off."""
RECONNECT_SECONDS = 1.0
PACE_SECONDS = 0.05
"""Of two lines that come faster than this, the second one waits, so that a node that sends many costs the operator no more."""
MOST_ATTEMPTS = 64
"""How many nodes are connected to at once, and how many of those that were silent. One whose machine is lost takes SILENCE_SECONDS."""

logger = structlog.get_logger()


def open_stream(kubernetes: KubernetesReader, port: NodePort) -> LineStream:
    """Connect to a node. Raises OSError if it can't be reached, ssl.SSLError if it can't be verified."""
    address = with_authorities(port, kubernetes)
    if isinstance(address, Unknown):
        raise ssl.SSLError(address.why)
    return follow(address.url("/alive"), SILENCE_SECONDS, address.trust)


class NodeStreams:
    """The streams of all SQL nodes that the watches have seen.

    `lost` is called with the cluster of a node that is lost, or that reports new trouble or other users. `blocked` is called when the set
    of tablespaces changes on which a node reports hanging statements. The thread of all streams calls them: they must not wait.
    """

    def __init__(
        self,
        lost: Callable[[Key], None],
        blocked: Callable[[Key], None],
        liveness: NodeLiveness,
        connect: Callable[[NodePort], LineStream],
        reconnect_seconds: float = RECONNECT_SECONDS,
    ) -> None:
        self._lost = lost
        self._blocked = blocked
        self._liveness = liveness
        self._connect = connect
        self._reconnect_seconds = reconnect_seconds
        self._followed: dict[tuple[str, str], Future[None]] = {}
        self._stopped = False
        self._lock = threading.Lock()
        self._silent: set[str] = set()
        """Uids of the pods to which the last attempt got no answer in time. No other node waits for a thread behind them."""
        self._attempts = ThreadPoolExecutor(MOST_ATTEMPTS, "connect-to-node")
        self._attempts_in_silence = ThreadPoolExecutor(MOST_ATTEMPTS, "connect-to-silent-node")
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name="node-streams", daemon=True).start()

    def pod(self, owner: Key, body: Json, *, over: bool) -> None:
        """Handle a pod's event: open a stream to a new address, end that of a pod that is over."""
        uid, address = body["metadata"]["uid"], ip_address(body)
        with self._lock:
            for known in [each for each in self._followed if each[0] == uid and (over or each[1] != address)]:
                self._followed.pop(known).cancel()
            if over or not address or (uid, address) in self._followed or self._stopped:
                return
            port = port_of_pod(HerdDBNames(ObjectKey(owner.namespace, owner.name)), body)
            self._followed[uid, address] = asyncio.run_coroutine_threadsafe(self._follow(owner, uid, port), self._loop)

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._followed.clear()
        asyncio.run_coroutine_threadsafe(self._end(), self._loop)

    def _run(self) -> None:
        with closing(self._loop):
            self._loop.run_forever()

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for each in others:
            each.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for pool in (self._attempts, self._attempts_in_silence):  # not before: a stream that ends meanwhile would open another one
            pool.shutdown(wait=False, cancel_futures=True)
        self._loop.stop()

    async def _follow(self, owner: Key, uid: str, port: NodePort) -> None:
        try:
            while True:
                if await self._read(owner, uid, port):
                    self._lost(owner)
                await asyncio.sleep(self._reconnect_seconds)
        finally:
            self._silent.discard(uid)
            self._liveness.forget(uid)

    async def _read(self, owner: Key, uid: str, port: NodePort) -> bool:
        """Read until the stream ends. Returns whether it sent anything."""
        answered, before = False, SelfReport()

        def heard(line: bytes) -> None:
            nonlocal answered, before
            answered = True
            report = decode_line(line)
            self._liveness.heard(uid, report)
            now = report or SelfReport()
            if now.trouble() - before.trouble() or now.users != before.users:
                self._lost(owner)
            if now.blocked != before.blocked:
                self._blocked(owner)
            before = now

        try:
            with closing(await self._opened(uid, port)) as stream:
                await _Lines(stream, heard).end()
        except (OSError, http.client.HTTPException) as error:
            if _is_silence(error):
                return answered
        except Exception:  # an error of one attempt must not end the stream for good
            logger.exception("the stream of a SQL node has failed", host=port.host)
        self._liveness.forget(uid)  # a closed or refused connection is no silence: the process has ended
        return answered

    async def _opened(self, uid: str, port: NodePort) -> LineStream:
        attempt = (self._attempts_in_silence if uid in self._silent else self._attempts).submit(self._connect, port)
        self._silent.discard(uid)
        try:
            return await asyncio.wrap_future(attempt)
        except asyncio.CancelledError:
            attempt.add_done_callback(_close)
            raise
        except OSError as error:
            if _is_silence(error):
                self._silent.add(uid)
            raise


def _is_silence(error: Exception) -> bool:
    """Returns whether nothing answered in time, or from that address. A node that can't be verified is not silent."""
    return isinstance(error, OSError) and not isinstance(error, ConnectionError | ssl.SSLError)


def _close(attempt: Future[LineStream]) -> None:
    """Close what nobody waits for any more."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


class _Lines:
    """Calls `heard` with each line of a stream, in the event loop of this thread."""

    def __init__(self, stream: LineStream, heard: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._heard_at = self._loop.time()
        self._check = self._loop.call_later(SILENCE_SECONDS, self._check_silence)
        self._rest: asyncio.TimerHandle | None = None

    async def end(self) -> None:
        """Wait for the end. Raises OSError or HTTPException for any; TimeoutError after a silence."""
        self._loop.add_reader(self._stream, self._read)
        try:
            await self._ended
        finally:
            self._loop.remove_reader(self._stream)
            self._check.cancel()
            if self._rest is not None:
                self._rest.cancel()

    def _read(self) -> None:
        try:
            line = self._stream.next_line()
        except (OSError, http.client.HTTPException) as error:
            self._end(error)
            return
        now = self._loop.time()
        if line is not None and (self._stream.ready or now - self._heard_at < PACE_SECONDS):
            self._loop.remove_reader(self._stream)
            self._rest = self._loop.call_later(PACE_SECONDS, self._read)
        elif self._rest is not None:
            self._loop.add_reader(self._stream, self._read)
            self._rest = None
        if line is not None:
            self._heard_at = now
            self._heard(line)

    def _check_silence(self) -> None:
        left = self._heard_at + SILENCE_SECONDS - self._loop.time()
        if left > 0:
            self._check = self._loop.call_later(left, self._check_silence)
        else:
            self._end(TimeoutError(f"nothing came for {SILENCE_SECONDS:g} s"))

    def _end(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
