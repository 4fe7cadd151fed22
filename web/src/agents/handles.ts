/** Handles as the server makes them from names: `Dr. Noor Al-Amin` becomes `dr-noor-al-amin`. Pure. */

const LONGEST = 40;
const SPELLED: Record<string, string> = { ß: "ss", æ: "ae", œ: "oe", ø: "o", đ: "d", ð: "d", þ: "th", ł: "l", ı: "i", ħ: "h" };

/** The handle that resembles the name; empty where it has no Latin letter or digit: then one has to be chosen. */
export function handleFrom(name: string): string {
  const spelled = [...name.toLowerCase()].map((char) => SPELLED[char] ?? char).join("");
  const letters = spelled.normalize("NFKD").replace(/[\p{M}'’]/gu, "");
  const words = letters.replace(/[^a-z0-9._-]+/g, "-").replace(/[._-]*-[._-]*|\.{2,}/g, "-");
  return trimmed(trimmed(words).slice(0, LONGEST), true);
}

function trimmed(text: string, endOnly = false): string {
  const end = text.replace(/[._-]+$/, "");
  return endOnly ? end : end.replace(/^[._-]+/, "");
}

/** What is wrong with a handle that someone typed; null if nothing is. */
export function handleFault(handle: string): string | null {
  if (!handle) return "Enter at least one letter or digit.";
  if (/[^A-Za-z0-9._-]/.test(handle)) return "Use letters a to z, digits, - _ and .";
  if (handle.length > LONGEST) return `At most ${LONGEST} characters.`;
  if (!/^[A-Za-z0-9].*$/.test(handle) || !/[A-Za-z0-9]$/.test(handle)) return "It must begin and end with a letter or digit.";
  return null;
}
