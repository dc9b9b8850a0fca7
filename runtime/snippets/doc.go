// Package snippets checks whether an example works. It runs a snippet of JavaScript or
// TypeScript in a separate sandbox, and returns its output, the state of the framework that it
// uses, and its errors.
//
//	Input ── check ── lint ── bundle ── sandbox: adapter, snippet ──> Output
//
// A [Runner] keeps sandboxes ready. Each is used for one snippet and then closed, unless
// [Options].Shared is set. Package bundle bundles the snippet's files into one module and connects
// it to the packages that it imports; package lint checks the imports, names and constructs of
// snippets against the rules of a framework. An [Adapter] runs with the snippet: it records the
// objects that the snippet creates, and reads their state at the end, also after an error or a timeout.
//
// [EncodeLink] makes the fragment of a URL of a snippet, the part after "#", which browsers do not send
// to servers.
//
// # Isolation
//
// Only the sandbox isolates a snippet, as any other program: see package runtime. Lint rules, bundles
// and adapters do not. A snippet can change the adapter's report and forge an Output, which is bounded
// and deceives only its own author.
//
// # Non-goals
//
// Package snippets is not a type checker: types are removed. It is not a test framework: it reports
// the output, and `gaol snippet check` compares that with the expected output.
//
// # Not protected against
//
// With Shared, snippets can end each other. The packages of Options.NodeModules are the
// operator's, and every snippet can read the packages that other snippets import.
package snippets
