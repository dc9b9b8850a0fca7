// Package bundle bundles the files of a snippet into one ES module, and the packages that snippets
// import.
//
//	files ── limits ── esbuild ──> Program: code, source map
//	                      │ imports of packages
//	node_modules ── esbuild ──> sets in the cache folder, mounted read-only in the sandbox
//
// # Snippets
//
// The files form a closed tree: TypeScript, TSX, JSX, JavaScript and JSON files import each
// other by relative paths. ./x.js finds x.ts, x.tsx, x.js and x.jsx, in this order; ./x also
// finds x.json and the index of a folder. Node's own modules stay imports. A
// tsconfig.json only selects decorators. There is no require, as in Node's ES modules. A .ts file that is valid only as TSX
// is read as TSX. JSX uses the automatic runtime if the packages have React's, and
// React.createElement otherwise.
//
// # Packages
//
// The packages that a snippet imports are bundled together, so that two packages that
// import a third share one instance of it. The result is a set: a folder with a module for
// each specifier, and the parts that they share. It is kept in memory, and in the cache
// folder for other processes, until a file changes that it was made of. Only files below the
// folder of packages are bundled.
//
// A module in CommonJS exports the names that its exports object has when it runs. Only
// running it shows them: see [PackagesOptions].Names.
//
// # Limits
//
// Snippets are hostile: run a [Job] in a process that may be killed, by Options.Run. esbuild does not
// bound its time and memory. It reads no files of the host for a snippet.
// Packages are the operator's and trusted: esbuild reads them without limits.
//
// # Non-goals
//
// Package bundle is neither a sandbox nor a type checker: programs are as hostile as snippets.
package bundle
