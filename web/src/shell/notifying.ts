/** Notifications of the browser: whether they are wanted, and showing one. */
import type { News } from "./news";
import { turnOffPush } from "./push";
import { base } from "../denizen/base";
import { sharePageKey } from "../denizen/pageKey";

const WANTED = "notifications";
const LOOKED_AT = "looked at";

/** `impossible`: this browser has none, or the page is not served over HTTPS. */
export type Permission = "on" | "off" | "refused" | "impossible";

export function permission(): Permission {
  if (!("Notification" in window) || !window.isSecureContext) return "impossible";
  if (Notification.permission === "denied") return "refused";
  return Notification.permission === "granted" && localStorage.getItem(WANTED) === "on" ? "on" : "off";
}

export async function turnOn(): Promise<Permission> {
  if ((await Notification.requestPermission()) === "granted") localStorage.setItem(WANTED, "on");
  await installWorker();
  return permission();
}

export function turnOff(): Permission {
  localStorage.removeItem(WANTED);
  void turnOffPush();
  return permission();
}

/** Installs the service worker, which keeps the page for times without a connection and shows notifications. */
export async function installWorker(): Promise<void> {
  if (!("serviceWorker" in navigator)) return;
  try {
    await navigator.serviceWorker.register(`${base}/sw.js`);
  } catch {
    // Not allowed: the page works without.
  }
}

/** Whether somebody looks at this tab. */
export function isLookedAt(): boolean {
  return document.visibilityState === "visible" && document.hasFocus();
}

/** Holds a lock that other tabs see for as long as somebody looks at this one; until the returned function is called. */
export function showLooking(onChange: (looked: boolean) => void): () => void {
  let release: (() => void) | null = null;
  const look = (): void => {
    const looked = isLookedAt();
    onChange(looked);
    if (looked && release === null) {
      const held = new Promise<void>((resolve) => (release = resolve));
      void navigator.locks?.request(LOOKED_AT, { mode: "shared" }, () => held);
    } else if (!looked && release !== null) {
      release();
      release = null;
    }
  };
  window.addEventListener("focus", look);
  window.addEventListener("blur", look);
  document.addEventListener("visibilitychange", look);
  look();
  return () => {
    window.removeEventListener("focus", look);
    window.removeEventListener("blur", look);
    document.removeEventListener("visibilitychange", look);
    release?.();
  };
}

/** Whether somebody looks at any tab of this browser. */
export async function isAnyLookedAt(): Promise<boolean> {
  if (isLookedAt()) return true;
  const locks = await navigator.locks?.query();
  return locks?.held?.some((each) => each.name === LOOKED_AT) ?? false;
}

export async function show({ tag, title, body, path, call }: News): Promise<void> {
  const options = { tag, body, icon: `${base}/icon-192.png`, badge: `${base}/icon-192.png`, data: { path, call } };
  const actions = call
    ? [
        { action: "confirm", title: "Confirm" },
        { action: "decline", title: "Decline" },
      ]
    : [];
  const registration = await navigator.serviceWorker?.getRegistration();
  if (call) await sharePageKey();
  if (registration?.active) await registration.showNotification(title, { ...options, actions } as NotificationOptions);
  else new Notification(title, options).onclick = () => window.focus();
}

/** What was shown has been seen. */
export async function clearShown(): Promise<void> {
  const registration = await navigator.serviceWorker?.getRegistration();
  for (const each of (await registration?.getNotifications()) ?? []) each.close();
}
