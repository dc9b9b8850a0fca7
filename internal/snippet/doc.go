// Package snippet makes a program of a piece of JavaScript or TypeScript as language models
// hand it over, one that says what the piece is worth, and leads from places in the program
// back to what the model wrote.
//
//	          ┌ Markdown's blocks ┐   ┌ JavaScript: as it is      ┐   ┌ Module ─> an ES module that calls Deliver
//	snippet ──┤                   ├──>┤ TypeScript, JSX: esbuild  ├──>┤
//	          └ the whole         ┘   └ (half a statement: mended)┘   └ Cell ───> a script for V8's REPL mode
//	   ▲                                                                │
//	   └──────────────────────────── Position ──────────────────────────┘
//
// # What a snippet is worth
//
//	a lone expression                                its value, awaited
//	statements that end with an expression           that one's
//	if, try, switch, a block or a label at the end   that of the last statement of the part that ran
//	a function's expression, (…) => … or such, last  what it gives when it's called without arguments
//	a function that is declared, alone               the same, with export or without
//	a function as export default last                the same
//	export default last                              what is exported
//	code with a return outside of functions          what is returned, or what the other rules say
//	{ a: 1 } or { a, b } alone or last, {} alone     an object, as a block can be read as one
//	exports.a = 1, module.exports.a = 1 last         undefined: what is exported is for the guest to find
//	a function as module.exports = … last            what it gives when it's called
//	anything else: a declaration, a loop, nothing    undefined
//
// Imports, lists of exports and lone semicolons are none of a snippet's ends. A return makes
// the code the body of an async function, and imports go before it. A function is called
// as it could be no value: JSON has none. One that has a name by then, as in const f = () =>
// 1 and then f, is not. In a [Cell] a function's declaration is for later cells: it is not
// called, whereas an expression that is one and a function that is export default's are, as
// in a module.
//
// # What is mended, and what isn't
//
// Code in Markdown, between ``` or ~~~: the blocks that say js, ts or a name like it, and
// those that say nothing and are code, as one program. They may stand in a list's items, in
// block quotes and as far to the right as they like; and ```js 1 + 1``` is one if it's all
// there is. What is a program as it stands is
// taken as it stands; three backticks that begin a line, outside of all templates and
// comments, are never meant to be one, nor to be text between tags, such as <answer> and
// </answer>. An object or a function without a name gets parentheses. Nothing else is
// guessed: it's a [SyntaxError].
//
// # Languages
//
// Plain JavaScript stays as it is, in its lines, and what is written into it is on a line
// that is there or behind the end. TypeScript and JSX, and decorators, become JavaScript by
// esbuild: for the newest V8, in its own lines, without a tsconfig.json. Imports that aren't
// used stay, those of types go. JSX becomes React.createElement, unless a comment says @jsx
// or @jsxRuntime.
//
// Where statements begin and end is for the reader, a parser that keeps positions, to say:
// parsers in Go that could be found know neither all of today's syntax nor where things
// stand. What is valid is for esbuild to say.
//
// # Files
//
// [Translate] does the same for a file of TypeScript or JSX, without looking for a value, and
// adds a source map. [SyntaxOf] says of JavaScript whether it is written as an ES module or as
// CommonJS. A name such as require counts only where it is a variable that the code does not
// declare. The reader finds the names. esbuild, which knows scopes, decides only if the code
// declares one of them somewhere.
//
// # Limits
//
// Parsers recurse, and Go ends a process whose stack is too large; nobody can recover from
// that. So the reader counts how deep JavaScript nests before esbuild sees it, and for what
// the reader can't read, the scanner does. They estimate what esbuild will take, too: parts
// of it take the square or the cube of how often code repeats or how deep it nests, above all
// what it has to say of wrong code. Beyond 0.4 s TypeScript is refused, and JavaScript
// goes unchecked: V8 alone says then whether it's valid. See effort.go for the numbers.
//
// # What it is not
//
// No sandbox: programs are as hostile as snippets. No bundler, no type checker, and nothing
// is read from disk or network. No formatter: Code is for V8.
//
// # What it does not protect against
//
// A snippet that means to mislead: it can declare globalThis, deliver by itself, or carry
// names that look like ours. What comes of it is the guest's word. A bug in esbuild that
// panics, which it does in a goroutine of its own, ends the host. Several callers at once
// take that time and its memory each: that's for who serves them to bound.
package snippet
