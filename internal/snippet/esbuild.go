package snippet

import (
	"cmp"
	"sync"

	"github.com/evanw/esbuild/pkg/api"
)

// What code is called says to esbuild whether it's a module for sure.
const (
	moduleName = "snippet.mts"
	scriptName = "snippet.ts"
)

// check asks esbuild whether JavaScript that the reader has read is valid.
func (c *compiler) check(d draft) *SyntaxError {
	if c.isValid(d) {
		return nil
	}
	if result := c.transform(d, api.TransformOptions{Loader: api.LoaderJS}); len(result.Errors) > 0 {
		return c.syntaxError(d, result)
	}
	return nil
}

// passes says whether all that is errorAt with code is a break behind it, that we put there.
// esbuild goes on after such an error, so it has judged all of the code by then, but does
// not take its time to write what is of no use: half of it.
func (c *compiler) isValid(d draft) bool {
	const last = "break"
	d.text += "\n;" + last
	result := c.transform(d, api.TransformOptions{Loader: api.LoaderJS})
	return len(result.Errors) == 1 && d.offset(result.Errors[0]) == len(d.text)-len(last)
}

// translate makes JavaScript of TypeScript or of JSX. Where things came from is asked for
// of code that fails only: the source map is made when it is.
func (c *compiler) translate(d draft, loader api.Loader) (draft, *SyntaxError) {
	result := c.transform(d, api.TransformOptions{Loader: loader})
	if len(result.Errors) > 0 {
		return draft{}, c.syntaxError(d, result)
	}
	sources := sync.OnceValue(func() []byte {
		return c.transform(d, api.TransformOptions{
			Loader:         loader,
			Sourcemap:      api.SourceMapExternal,
			SourcesContent: api.SourcesContentExclude,
		}).Map
	})
	return d.with(string(result.Code), mapped{d.text, string(result.Code), sources}), nil
}

// config stands for a tsconfig.json: none is looked for. Only what says that it is a type
// is dropped from imports.
const config = `{"compilerOptions": {"verbatimModuleSyntax": true}}`

func (c *compiler) transform(d draft, options api.TransformOptions) api.TransformResult {
	options.Sourcefile = cmp.Or(c.file, scriptName)
	if c.module {
		options.Sourcefile = moduleName
	}
	options.Target = api.ESNext
	options.Supported = map[string]bool{"decorators": false} // V8 has none yet
	options.Charset = api.CharsetUTF8
	options.JSX = api.JSXTransform
	options.TsconfigRaw = config
	options.TreeShaking = api.TreeShakingFalse
	options.LogLevel = api.LogLevelSilent
	return api.Transform(d.text, options)
}

// fails takes over esbuild's first message.
func (c *compiler) syntaxError(d draft, result api.TransformResult) *SyntaxError {
	c.conclusive = c.conclusive || len(result.Errors) > conclusiveErrors
	return d.errorAt(d.offset(result.Errors[0]), result.Errors[0].Text)
}

// offset is where a message is about. Its columns count bytes, from 0.
func (d draft) offset(m api.Message) int {
	offset := 0
	if at := m.Location; at != nil {
		offset = max(0, offsetOf(d.text, at.Line, 1)) + at.Column
	}
	return min(offset, len(d.text))
}
