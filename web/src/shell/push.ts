/** Web push: notifications through the push service of the browser, while no tab is open. */
import { get, post, remove } from "../denizen/api";
import { sharePageKey } from "../denizen/pageKey";

/** The id of this browser's subscription at the server. */
const SUBSCRIBED = "push subscription";

/** `switched off`: by the operator of the server. `impossible`: the browser has no push service, or it cannot be reached. */
export type Push = "on" | "off" | "switched off" | "impossible";

export function pushState(): Push {
  if (!("PushManager" in window)) return "impossible";
  return localStorage.getItem(SUBSCRIBED) === null ? "off" : "on";
}

/** One change at a time, in all tabs: a renewal under way must not undo that somebody turned it off. */
async function alone<T>(work: () => Promise<T>): Promise<T> {
  return navigator.locks ? await navigator.locks.request("push", work) : work();
}

/** The service worker is installed, and notifications are permitted. */
export function turnOnPush(): Promise<Push> {
  return alone(begin);
}

async function begin(): Promise<Push> {
  if (!("PushManager" in window)) return "impossible";
  const { public_key } = await get("/api/push");
  if (public_key === null) return "switched off";
  try {
    const { pushManager } = await navigator.serviceWorker.ready;
    const subscription = await subscribed(pushManager, public_key);
    const { endpoint, keys } = subscription.toJSON();
    await sharePageKey();
    const made = await post("/api/push/subscriptions", { body: { endpoint: endpoint ?? "", keys: { p256dh: keys?.p256dh ?? "", auth: keys?.auth ?? "" } } });
    localStorage.setItem(SUBSCRIBED, made.id);
    return "on";
  } catch {
    return "impossible";
  }
}

async function subscribed(manager: PushManager, key: string): Promise<PushSubscription> {
  const present = await manager.getSubscription();
  if (present !== null && keyOf(present) === key) return present;
  // The server has another key now, as after its data was lost.
  await present?.unsubscribe();
  return manager.subscribe({ userVisibleOnly: true, applicationServerKey: key });
}

function keyOf(subscription: PushSubscription): string {
  const bytes = new Uint8Array(subscription.options.applicationServerKey ?? new ArrayBuffer(0));
  return btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function turnOffPush(): Promise<void> {
  return alone(end);
}

async function end(): Promise<void> {
  const id = localStorage.getItem(SUBSCRIBED);
  if (id === null) return;
  localStorage.removeItem(SUBSCRIBED);
  const registration = await navigator.serviceWorker?.getRegistration();
  await (await registration?.pushManager.getSubscription())?.unsubscribe().catch(() => undefined);
  await remove("/api/push/subscriptions/{subscription_id}", { path: { subscription_id: id } }).catch(() => undefined);
}

/** The subscription belongs to the present session, and is as the browser has it now: it may change it at any time. */
export function renewPush(): Promise<void> {
  return alone(async () => {
    if (pushState() === "on" && Notification.permission === "granted") await begin().catch(() => undefined);
  });
}
