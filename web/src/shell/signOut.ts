import { remove } from "../denizen/api";
import { keepPageKey } from "../denizen/pageKey";
import { turnOffPush } from "./push";
import { base } from "../denizen/base";

/** The session is over; the page begins anew, and holds nothing of who was here. */
export async function signOut(): Promise<void> {
  try {
    await turnOffPush();
    await remove("/api/session");
  } finally {
    keepPageKey(null);
    location.assign(`${base}/login`);
  }
}
