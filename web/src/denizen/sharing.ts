/**
 * The stream that tabs share, in a shared worker.
 *
 * A new tab has to be told the present state, as every new connection is. So a second connection is opened for it, which
 * resumes after the last event of the first; once it is ready, all tabs are told what comes from there, and the first is
 * closed. Nothing is missed in between, and messages that come twice are the same.
 */
import type { ServerEvent, StreamHandlers, StreamOptions } from "./stream.ts";
import { RESUMED, type ToTab } from "./sharedStream.ts";

export interface Tab {
  postMessage: (message: ToTab) => void;
}

type Open = (path: string, handlers: StreamHandlers, options: StreamOptions) => () => void;

interface Connection {
  isReady: boolean;
  close: () => void;
}

export class SharedStream {
  #path: string;
  #headers: Record<string, string>;
  #open: Open;
  #lastId: string | null = null;
  #current: Connection | null = null;
  /** The connection that takes over when it is ready. */
  #next: Connection | null = null;
  #tabs = new Set<Tab>();
  /** Tabs that are told nothing yet but what comes from the next connection. */
  #newcomers = new Set<Tab>();
  #queue: [Set<Tab>, ServerEvent[]][] = [];

  constructor(path: string, headers: Record<string, string>, open: Open) {
    this.#path = path;
    this.#headers = headers;
    this.#open = open;
  }

  get isEmpty(): boolean {
    return this.#tabs.size === 0 && this.#newcomers.size === 0;
  }

  join(tab: Tab): void {
    this.#newcomers.add(tab);
    if (this.#next === null) this.#next = this.#connect();
  }

  leave(tab: Tab): void {
    this.#tabs.delete(tab);
    this.#newcomers.delete(tab);
    if (!this.isEmpty) return;
    this.#current?.close();
    this.#next?.close();
    this.#current = this.#next = null;
  }

  #connect(): Connection {
    const connection: Connection = { isReady: false, close: () => undefined };
    connection.close = this.#open(
      this.#path,
      {
        onOpen: () => this.#tell(this.#audience(connection), { type: "open" }),
        onEvent: (event) => this.#hear(connection, event),
        onLost: (refused) => this.#lose(connection, refused),
      },
      { headers: () => this.#headers, after: this.#lastId },
    );
    return connection;
  }

  /** Those that are told what comes over this connection. */
  #audience(connection: Connection): Set<Tab> {
    if (connection === this.#current) return this.#tabs;
    return connection === this.#next ? this.#newcomers : new Set();
  }

  #hear(connection: Connection, event: ServerEvent): void {
    if (event.name === "ready" && connection === this.#next) {
      // Tabs whose connection was lost may have missed something.
      const told = this.#current?.isReady ? { name: RESUMED, data: "", id: null } : event;
      this.#current?.close();
      this.#current = connection;
      this.#next = null;
      this.#pass(new Set(this.#tabs), told);
      this.#pass(new Set(this.#newcomers), event);
      for (const tab of this.#newcomers) this.#tabs.add(tab);
      this.#newcomers.clear();
    } else {
      this.#pass(new Set(this.#audience(connection)), event);
    }
    if (event.name === "ready") connection.isReady = true;
    if (connection === this.#current) this.#lastId = event.id ?? this.#lastId;
  }

  #lose(connection: Connection, refused: boolean): void {
    connection.isReady = false;
    this.#tell(this.#audience(connection), { type: "lost", refused });
    if (!refused) return;
    // Nothing more comes from it: tabs that still want the stream join again.
    if (connection === this.#current) {
      this.#current = null;
      this.#tabs.clear();
    } else if (connection === this.#next) {
      this.#next = null;
      this.#newcomers.clear();
    }
  }

  /** Events that arrive together are passed on together. */
  #pass(tabs: Set<Tab>, event: ServerEvent): void {
    if (this.#queue.length === 0) queueMicrotask(() => this.#flush());
    const last = this.#queue.at(-1);
    if (last && last[0].size === tabs.size && [...tabs].every((tab) => last[0].has(tab))) last[1].push(event);
    else this.#queue.push([tabs, [event]]);
  }

  #flush(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (const [tabs, events] of queue) for (const tab of tabs) tab.postMessage({ type: "events", events });
  }

  #tell(tabs: Set<Tab>, message: ToTab): void {
    this.#flush();
    for (const tab of tabs) tab.postMessage(message);
  }
}
