// Package snippets answers whether an example works. It runs a snippet of JavaScript or
// TypeScript in a sandbox of its own, and returns what it printed, the state of the framework
// that it uses, and its errors.
//
//	Input ── check ── lint ── bundle ── sandbox: adapter, snippet ──> Output
//
// A [Runner] keeps sandboxes ready. Each is used for one snippet and then closed, unless
// [Options].Shared is set. Package bundle makes one module of the snippet's files and connects
// it to the packages that it imports; package lint checks what the snippets of a framework may
// contain. An [Adapter] runs with the snippet: it records what the snippet creates, and reads
// its state at the end, also after an error or a timeout.
//
// # What confines a snippet
//
// The sandbox, as any other program: see package runtime. Neither lint rules nor bundles nor
// adapters do. A snippet can change the adapter's report and forge an Output, which is bounded
// and deceives only its own author.
//
// # What it is not
//
// No type checker: types are removed. No test framework: it reports what happened, and `gaol
// snippet check` compares that with the expected output.
//
// # What it does not protect against
//
// With Shared, snippets can end each other. The packages of Options.NodeModules are the
// operator's, and every snippet can read those that others import.
package snippets
