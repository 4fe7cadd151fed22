/**
 * The path that all addresses of the server begin with: empty, or such as `/agents` where a proxy serves it below a path.
 * The server writes it into the page; a worker finds it in the address of its own file.
 */
export const base: string =
  typeof document === "undefined"
    ? (globalThis.location?.pathname.split("/assets/")[0] ?? "")
    : (document.querySelector<HTMLMetaElement>('meta[name="denizen-base"]')?.content.replace(/\/$/, "") ?? "");
