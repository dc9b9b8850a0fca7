// Package docs tests the project's documentation: every code block of every page compiles,
// runs, or is checked, according to its language.
//
//	go             compiles; statements compile in a function that has ctx, rt, code and data
//	console        runs; output is compared, and … in it matches any text
//	sh             every gaol command has only subcommands and flags that exist, and so have
//	               make's targets
//	js, ts, tsx    runs in a sandbox; a last line "// → JSON" is the expected value
//	json           is valid JSON
//	typescript     uses the npm package, whose tests compile it
//	text           anything else, which is not tested
//
// A name behind the language, as in "js prog.mjs", makes a file of that name for the console
// blocks of the same page, which run in one folder.
package docs
