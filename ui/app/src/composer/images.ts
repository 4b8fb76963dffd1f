/** An image of a prompt. */
export interface Attachment {
  name: string;
  mediaType: string;
  data: Uint8Array<ArrayBuffer>;
}

const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const MAX_BYTES = 5_000_000;

/** Reads images for a prompt. Rejects if one has another type or is too large. */
export async function readImages(files: Iterable<File>): Promise<Attachment[]> {
  const read: Attachment[] = [];
  for (const file of files) {
    if (!TYPES.includes(file.type)) throw new Error(`${file.name} is no PNG, JPEG, GIF or WebP image`);
    if (file.size > MAX_BYTES) throw new Error(`${file.name} is larger than 5 MB`);
    read.push({ name: file.name, mediaType: file.type, data: new Uint8Array(await file.arrayBuffer()) });
  }
  return read;
}
