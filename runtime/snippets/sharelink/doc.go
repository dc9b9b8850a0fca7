// Package sharelink encodes snippets as the fragment of a URL, the part after "#", which browsers
// do not send to servers.
//
//	src=E      E is the source of src/main.ts
//	files=E    E is the JSON array [{"path": ..., "source": ...}, ...]
//
// E is the text in UTF-8, compressed with DEFLATE (RFC 1951), in unpadded base64url. The text has
// at most 200,000 bytes.
//
// Fragments come from strangers. Decode bounds their size; it does not check paths, which
// [gaol/runtime/snippets.Runner.Run] does.
package sharelink
