/** Reads the messages of a space into the store, page by page, as far as they are looked at. */
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { ApiError, get, type Message } from "../denizen/api";
import { type Store, useLive, useStore } from "../denizen/live";
import { firstSeq, hasEarlier, hasLater, lastSeq, unread } from "../denizen/store";

const PAGE = 50;
const LONGEST_PAGE = 200;
const RETRY_MS = 2_000;

export interface Conversation {
  error: unknown;
  /** Which page is being read. */
  loading: "first" | "earlier" | "later" | null;
  loadEarlier: () => void;
  loadLater: () => void;
  /** The window is around that message; without a number, at the end. */
  jump: (seq: number | null) => Promise<void>;
  retry: () => void;
}

export function useConversation(id: string, at: number | null): Conversation {
  const store = useStore();
  const known = useLive((state) => state.loaded && state.spaces[id] !== undefined);
  const stale = useLive((state) => state.spaces[id]?.stale ?? 0);
  const open = useLive((state) => state.connection === "open");
  const [error, setError] = useState<unknown>(null);
  const [loading, setLoading] = useState<Conversation["loading"]>(null);
  const busy = useRef<Promise<void> | null>(null);

  const run = useCallback(async (what: NonNullable<Conversation["loading"]>, work: () => Promise<void>): Promise<void> => {
    // Leafing is tried again by whoever scrolls on; to be somewhere else is wanted once.
    if (busy.current && what !== "first") return;
    while (busy.current) await busy.current;
    const attempt = async (): Promise<void> => {
      setLoading(what);
      try {
        await work();
        setError(null);
      } catch (problem) {
        setError(problem);
      } finally {
        busy.current = null;
        setLoading(null);
      }
    };
    busy.current = attempt();
    await busy.current;
  }, []);

  const jump = useCallback((seq: number | null) => run("first", () => readAround(store, id, seq, true)), [run, store, id]);
  const loadEarlier = useCallback(() => {
    const space = store.getState().spaces[id];
    if (space && hasEarlier(space)) void run("earlier", () => readPage(store, id, { before: firstSeq(space)! }));
  }, [run, store, id]);
  const loadLater = useCallback(() => {
    const space = store.getState().spaces[id];
    if (space && hasLater(space)) void run("later", () => readPage(store, id, { after: lastSeq(space) ?? 0 }));
  }, [run, store, id]);

  const begin = useCallback(() => {
    const space = store.getState().spaces[id];
    if (!space) return;
    const wanted = at ?? (unread(space) > PAGE / 2 ? space.info.read_seq : null);
    // The first of the window is not shown before it is known what stands above it.
    const first = hasEarlier(space) ? firstSeq(space)! + 1 : 1;
    const there = space.window !== null && (at === null || (at >= first && at <= (lastSeq(space) ?? 0)));
    if (!there) void run("first", () => readAround(store, id, wanted, space.window !== null));
  }, [run, store, id, at]);
  useEffect(() => {
    if (known) begin();
  }, [known, begin]);
  useEffect(() => {
    if (stale === 0 || !open) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let ended = false;
    // Edits and deletions are told once: whoever was away looks again, until that succeeds.
    const again = (): void =>
      void readAgain(store, id, stale).catch((problem: unknown) => {
        if (!ended && problem instanceof ApiError && problem.passing) timer = setTimeout(again, RETRY_MS);
      });
    again();
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [stale, open, store, id]);

  const retry = useCallback(() => {
    setError(null);
    begin();
  }, [begin]);
  const failed = error !== null;
  useEffect(() => {
    // What could not be read without a connection is read when it is back.
    if (open && failed) retry();
    // Only then: where the server refuses, asking again at once would be asking for ever.
  }, [open]);
  useEffect(() => {
    // The first request after a break may still fail, though the stream is open: then it is tried again.
    if (!open || !(error instanceof ApiError) || error.code !== "offline") return;
    const timer = setTimeout(retry, RETRY_MS);
    return () => clearTimeout(timer);
  }, [open, error, retry]);

  return useMemo(() => ({ error, loading, loadEarlier, loadLater, jump, retry }), [error, loading, loadEarlier, loadLater, jump, retry]);
}

async function readAround(store: Store, id: string, seq: number | null, replace: boolean): Promise<void> {
  const query = seq === null ? { limit: PAGE } : { before: seq + PAGE / 2, limit: PAGE };
  const messages = await read(store, id, query);
  store.dispatch({ type: "page", space: id, messages, replace });
}

async function readPage(store: Store, id: string, where: { before: number } | { after: number }): Promise<void> {
  const messages = await read(store, id, { ...where, limit: PAGE });
  store.dispatch({ type: "page", space: id, messages });
}

/** A page, with its calls in the queue of the store. What the stream did not tell while it was away is in it. */
async function read(store: Store, id: string, query: { before?: number; after?: number; limit: number }): Promise<Message[]> {
  for (;;) {
    const { begun } = store.getState();
    const { messages } = await get("/api/spaces/{space_id}/messages", { path: { space_id: id }, query });
    await withCalls(store, id, messages);
    store.flush(); // The stream may have begun, and its event waits for the next frame.
    if (store.getState().begun === begun) return messages;
  }
}

/** The calls that stand behind these messages are put into the store together with whatever comes next. */
async function withCalls(store: Store, id: string, messages: Message[]): Promise<void> {
  const first = messages[0]?.seq ?? 0;
  const after = first <= 1 ? 0 : first;
  const query = { after, before: messages.at(-1)?.seq, limit: LONGEST_PAGE };
  const { calls } = await get("/api/spaces/{space_id}/calls", { path: { space_id: id }, query });
  store.enqueue({ type: "calls", space: id, calls });
}

async function readAgain(store: Store, id: string, stale: number): Promise<void> {
  const space = store.getState().spaces[id];
  const last = space ? lastSeq(space) : null;
  const found: Message[] = [];
  if (space && last !== null) {
    for (let after = firstSeq(space)! - 1; after < last; ) {
      const page = await get("/api/spaces/{space_id}/messages", { path: { space_id: id }, query: { after, limit: LONGEST_PAGE } });
      found.push(...page.messages);
      await withCalls(store, id, page.messages);
      if (page.next === null) break;
      after = page.next;
    }
  }
  store.dispatch({ type: "refreshed", space: id, messages: found, stale });
}
