/**
 * The service worker: the page opens without a connection, and notifications lead back to it. Those of web push come
 * here while no page is open.
 *
 * It keeps the one page and the files that it loaded, never an answer of the API. The page is asked for each time, and
 * the copy is used only where the server cannot be reached. When the page is another, the files of the old one go.
 */
const SHELL = "shell";
/** The path that all addresses begin with: empty, or such as `/agents`. */
const BASE = new URL(self.registration.scope).pathname.replace(/\/$/, "");
/** Addresses that are no pages of the client. */
const OTHERS = /^\/(api|v1|hooks|metrics|healthz|readyz|a2a|mcp|files|pictures|login\/oidc|diagram\.html)(\/|$)/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin) return;
  if (request.mode === "navigate" && !OTHERS.test(url.pathname.slice(BASE.length))) event.respondWith(page(request));
  else if (url.pathname.startsWith(`${BASE}/assets/`) || url.pathname === `${BASE}/icon.svg`) event.respondWith(file(request));
});

async function page(request) {
  try {
    const answer = await fetch(request);
    // Files that people send may be HTML too: only the server's word for it makes an answer the page.
    if (answer.ok && answer.headers.has("denizen-shell")) await keep(answer.clone());
    return answer;
  } catch (error) {
    const kept = await (await caches.open(SHELL)).match(`${BASE}/`);
    if (kept) return kept;
    throw error;
  }
}

async function keep(answer) {
  const cache = await caches.open(SHELL);
  const before = await cache.match(`${BASE}/`);
  const same = before && before.headers.get("etag") === answer.headers.get("etag");
  if (same) return;
  if (before) await Promise.all((await cache.keys()).map((each) => cache.delete(each)));
  await cache.put(`${BASE}/`, answer);
}

async function file(request) {
  const cache = await caches.open(SHELL);
  const kept = await cache.match(request.url);
  if (kept) return kept;
  const answer = await fetch(request);
  if (answer.ok) await cache.put(request.url, answer.clone());
  return answer;
}

self.addEventListener("push", (event) => event.waitUntil(pushed(event.data)));

/** Shows what the server sends, unless somebody looks at a page: that one tells by itself. */
async function pushed(data) {
  const { tag, title, body, path, call } = data.json();
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  if (pages.some((each) => each.focused)) return;
  const actions = [
    { action: "confirm", title: "Confirm" },
    { action: "decline", title: "Decline" },
  ];
  await self.registration.showNotification(title, {
    tag,
    body,
    icon: `${BASE}/icon-192.png`,
    badge: `${BASE}/icon-192.png`,
    data: { path, call },
    actions: call ? actions : [],
  });
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(clicked(event.action, event.notification.data));
});

/** Answers the question if one of its buttons was pressed, otherwise leads to what the notification is about. */
async function clicked(action, { path, call }) {
  if (action && call) {
    await answer(call, action === "confirm", path);
    return;
  }
  const pages = await self.clients.matchAll({ type: "window", includeUncontrolled: true });
  const open = pages.find((each) => each.visibilityState === "visible") ?? pages[0];
  if (!open) {
    await self.clients.openWindow(BASE + path);
    return;
  }
  open.postMessage({ type: "go", path });
  await open.focus().catch(() => undefined);
}

/**
 * Answers a question. No page is asked to: one that is being closed, or that the browser has frozen, is still listed and
 * would never do it. A notification says so if it failed.
 */
async function answer(call, confirmed, path) {
  const key = await (await (await caches.open("session")).match("/page-key"))?.text();
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ result: { confirmed } }) };
  if (key) request.headers["Denizen-Page-Key"] = key;
  try {
    const answered = await fetch(`${BASE}/api/calls/${encodeURIComponent(call)}/answer`, request);
    if (answered.ok) return;
    throw new Error(String(answered.status));
  } catch {
    const body = "It may be answered already, or you are signed out or offline. Open Denizen to see.";
    await self.registration.showNotification("Your answer was not sent", { tag: call, body, icon: `${BASE}/icon-192.png`, data: { path } });
  }
}
