// Package snippet compiles a piece of JavaScript or TypeScript, as language models write
// it, to a program that delivers the value of the piece, and maps positions in the program
// back to the original text.
//
//	          ┌ blocks of Markdown ┐   ┌ JavaScript: unchanged       ┐   ┌ Module ─> an ES module that calls Deliver
//	snippet ──┤                    ├──>┤ TypeScript, JSX: esbuild    ├──>┤
//	          └ the whole text     ┘   └ (incomplete: parenthesized) ┘   └ Cell ───> a script for V8's REPL mode
//	   ▲                                                                   │
//	   └───────────────────────────── Position ────────────────────────────┘
//
// # The value of a snippet
//
//	a lone expression                                its value, awaited
//	statements that end with an expression           the value of that expression
//	if, try, switch, a block or a label at the end   the value of the last statement of the part that ran
//	a function expression, (…) => … or such, last    its result when called without arguments
//	a function declaration, alone                    the same, with export or without
//	a function as export default last                the same
//	export default last                              the exported value
//	code with a return outside functions             the returned value, or the value by the other rules
//	{ a: 1 } or { a, b } alone or last, {} alone     an object, though the grammar reads a block
//	exports.a = 1, module.exports.a = 1 last         undefined: the guest reads the exports
//	export const a = 1, export { a } and no value    { a }: an object with the exported variables
//	a function as module.exports = … last            its result when called
//	anything else: a declaration, a loop, nothing    undefined
//
// Imports, export lists and lone semicolons at the end are ignored. Code with a return
// becomes the body of an async function, and its imports move before it. Functions are
// called because they cannot be encoded as JSON. A variable that holds a function is not
// called, as in const f = () => 1 and then f. In a [Cell], function declarations are for later
// cells and are not called; function expressions and functions of export default are, as in a
// module.
//
// JavaScript that modules do not allow, such as an assignment to an undeclared variable, a with
// statement or 010, is a script in the module, which Deliver may then give a promise. A script
// cannot use import and export declarations, import.meta or top-level await.
//
// # Corrections
//
// Code is extracted from Markdown, between ``` or ~~~: all blocks marked js, ts or similar,
// and unmarked blocks of valid code, form one program. They may be in list items or block
// quotes, and indented by any number of spaces; ```js 1 + 1``` is accepted if it is the
// whole text. A text that is a valid program is not changed, except that three backticks at
// the start of a line, outside templates and comments, always mean Markdown, also between
// tags, such as <answer> and </answer>. An object or an anonymous function is enclosed in
// parentheses. A byte order mark and a line with #! at the start of the text, or of a block, are
// ignored. Nothing else is guessed: it is a [SyntaxError].
//
// # Languages
//
// Plain JavaScript keeps its lines: insertions are made on existing lines or after the
// end. esbuild translates TypeScript, JSX, decorators and accessors to JavaScript for the newest
// V8, in other lines, without a tsconfig.json. Names that TypeScript imports and does not use as
// values are removed, as they may be types. A cell keeps them for later cells; they may be missing.
// Decorators follow JavaScript, unless a comment contains @experimentalDecorators. JSX becomes
// React.createElement, unless a comment contains @jsx or @jsxRuntime.
//
// A parser finds where statements start and end, and which variables the code assigns to. esbuild does not
// export its syntax tree. The parser takes a single pass, in linear time, and knows all syntax of the newest
// V8. Its lexer is that of tdewolff/parse. esbuild decides which code is valid. Of the alternatives (2026-11, Go 1.26):
//
//   - TypeScript's compiler in Go has only internal packages; in JavaScript it needs a sandbox
//     and 0.3 s to start.
//   - grafana/sobek's parser rejects for await, asynchronous generators in objects, and import
//     attributes. It reads the parameters of arrow functions twice: (a=(a=(a=1)=>1)=>1)=>1
//     nested 20 times takes 2.2 s, and the time is exponential in the depth.
//   - the parser of tdewolff/parse resolves scopes, but its tree lacks positions.
//
// # Files
//
// [Strip] translates a file for programs that analyze code, and maps offsets back; [Parse]
// returns the syntax tree of its result, with scopes. [Language] returns the language of a file.
//
// [Translate] translates a file of TypeScript or JSX, without a value, and adds a source
// map. [SyntaxOf] detects whether JavaScript is an ES module or CommonJS. A name such as
// require counts only if it is a variable that the code does not declare.
//
// [Sources] maps positions in a guest's stack traces and messages to the code as its author wrote it.
// [SourceMap] reads source maps (ECMA-426).
//
// # Limits
//
// The parser bounds how deep JavaScript nests, and code has at most [MaxCode] bytes. esbuild is
// not bounded: some code of a few hundred bytes takes it years, or all memory, and too much recursion
// ends a Go process without a way to recover. Only trusted code may be compiled in a process that has
// other tasks: package gaol/runtime/internal/work compiles hostile code.
//
// # Non-goals
//
// Package snippet is not a sandbox: programs are as hostile as snippets. It is not a bundler, a type
// checker or a formatter: Code is for V8. It reads nothing from disk or network.
//
// # Not protected against
//
// A snippet that cheats: it can declare globalThis, call Deliver, or use names that look
// like generated ones. The value is only the guest's claim. Code that exhausts the process: see above.
package snippet
