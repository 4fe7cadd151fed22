/**
 * The service worker: the page opens without a connection, and notifications lead back to it.
 *
 * It keeps the one page and the files that it loaded, never an answer of the API. The page is asked for each time, and
 * the copy is used only where the server cannot be reached. When the page is another, the files of the old one go.
 */
const SHELL = "shell";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && !/^\/(api|v1|hooks|metrics|healthz|readyz)(\/|$)/.test(url.pathname)) event.respondWith(page(request));
  else if (url.pathname.startsWith("/assets/") || url.pathname === "/icon.svg") event.respondWith(file(request));
});

async function page(request) {
  try {
    const answer = await fetch(request);
    if (answer.ok && answer.headers.get("content-type")?.startsWith("text/html")) await keep(answer.clone());
    return answer;
  } catch (error) {
    const kept = await (await caches.open(SHELL)).match("/");
    if (kept) return kept;
    throw error;
  }
}

async function keep(answer) {
  const cache = await caches.open(SHELL);
  const before = await cache.match("/");
  const same = before && before.headers.get("etag") === answer.headers.get("etag");
  if (same) return;
  if (before) await Promise.all((await cache.keys()).map((each) => cache.delete(each)));
  await cache.put("/", answer);
}

async function file(request) {
  const cache = await caches.open(SHELL);
  const kept = await cache.match(request.url);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request.url, answer.clone());
  return answer;
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(clicked(event.action, event.notification.data));
});

/** Answers the question if one of its buttons was pressed, otherwise leads to what the notification is about. */
async function clicked(action, { path, call }) {
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = pages.find((each) => each.visibilityState === "visible") ?? pages[0];
  if (action && call && open) {
    open.postMessage({ type: "answer", call, confirmed: action === "confirm" });
    return;
  }
  if (!open) {
    await self.clients.openWindow(path);
    return;
  }
  open.postMessage({ type: "go", path });
  await open.focus().catch(() => undefined);
}
