/** Files that a prompt mentions as `@path`, without the punctuation of the sentence. */
export function mentionedFiles(prompt: string): string[] {
  const words = [...prompt.matchAll(/(?:^|\s)@(\S+)/g)].map((match) => (match[1] ?? "").replace(/[,;:.!?)]+$/, ""));
  return [...new Set(words)].filter((path) => path !== "");
}
