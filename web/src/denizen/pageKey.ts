/**
 * The half of the session's secret that is not in the cookie. Browsers send cookies to every port of a host, so that the
 * server wants this as well: the storage of a page is for its own origin only.
 */
const NAME = "page key";
const HEADER = "Denizen-Page-Key";

/** Where the service worker finds it, which cannot read the page's storage. It is for the same origin only, too. */
const SHARED = "session";

let known: string | null = null;

export function keepPageKey(key: string | null): void {
  known = key;
  try {
    if (known === null) localStorage.removeItem(NAME);
    else localStorage.setItem(NAME, known);
  } catch {
    // Not allowed: then it lives as long as the page.
  }
  if (key === null && "caches" in window) void caches.delete(SHARED);
}

/** Lets the service worker act in the session: it answers questions from notifications. */
export async function sharePageKey(): Promise<void> {
  const key = pageKeyHeader()[HEADER];
  if (key === undefined || !("caches" in window)) return;
  try {
    await (await caches.open(SHARED)).put("/page-key", new Response(key));
  } catch {
    // Not allowed, or there is no room: the worker says that it could not answer.
  }
}

/** Whether this page can be in a session. */
export function hasPageKey(): boolean {
  return HEADER in pageKeyHeader();
}

/** The header to send with each request of the session. */
export function pageKeyHeader(): Record<string, string> {
  let key = known;
  try {
    key = localStorage.getItem(NAME) ?? known; // another tab may have signed in anew
  } catch {
    // Not allowed.
  }
  return key === null ? {} : { [HEADER]: key };
}
