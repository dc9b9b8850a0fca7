package requestjson

import "gaol/runtime/snippets"

// SnippetRunIn is the input of runSnippet. Exactly one of Source and Files is present.
type SnippetRunIn struct {
	Source      *string         `json:"source,omitempty" doc:"The text of src/main.ts, as the only file."`
	Files       []snippets.File `json:"files,omitempty" doc:"1 to 10 files, of 200,000 bytes of UTF-8 together. One is src/main.ts, which runs; the others are imported by it."`
	TimeoutMs   *int64          `json:"timeoutMs,omitempty" doc:"Wall-clock time limit: 100 to 10,000, to which other values are rounded. By default 5,000."`
	Adapter     string          `json:"adapter,omitempty" maxLength:"64" doc:"What reads the state of a framework: one of the names that GET /api/sandbox lists."`
	Permissions string          `json:"permissions,omitempty" enum:"strict,default,public" doc:"strict: nothing but compute and read; default: everything inside the sandbox, and no network; public: default with the public internet, if the server allows that."`
	NodeModules string          `json:"nodeModules,omitempty" maxLength:"4095" hidden:"true" doc:"The absolute path of the folder with the packages that the snippet may import. Only a server of one program allows it, as the next two."`
	AdapterCode string          `json:"adapterCode,omitempty" maxLength:"1048576" hidden:"true" doc:"The ES module of an adapter, whose name is adapter."`
	NoLint      bool            `json:"noLint,omitempty" hidden:"true" doc:"Do not check the adapter's lint rules."`
}
