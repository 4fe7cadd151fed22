/** The ids of what is not said yet. */

/** Under which idempotency keys become the ids of messages; docs/http.md says how. */
const MESSAGES = "5f1c7f5e-94a3-4a37-8d4b-6f2c1f7f0d11";

/** The id of the message that `author` posts under this key: a UUID of version 5. */
export async function messageId(author: string, key: string): Promise<string> {
  const namespace = MESSAGES.replaceAll("-", "").match(/../g)!.map((byte) => parseInt(byte, 16));
  const named = new Uint8Array([...namespace, ...new TextEncoder().encode(`${author} ${key}`)]);
  const hash = new Uint8Array(await crypto.subtle.digest("SHA-1", named)).slice(0, 16);
  hash[6] = (hash[6]! & 0x0f) | 0x50;
  hash[8] = (hash[8]! & 0x3f) | 0x80;
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, "0")).join("").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
