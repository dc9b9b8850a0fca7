package session

import (
	"gaol/cmd/gaol/server/service"
)

// FileParams name a file. They are exported because huma reads exported fields only.
type FileParams struct {
	SandboxParams
	Path      string `json:"path,omitempty" maxLength:"4095" doc:"An absolute, clean path in the sandbox."`
	PathBytes []byte `json:"pathBytes,omitempty" maxLength:"5460" doc:"Instead of path: its bytes in base64, if they are not UTF-8."`
}

func (p FileParams) path() (string, error) { return exactPath("path", p.Path, p.PathBytes) }

// exactPath returns a path that a request has as text or as bytes.
func exactPath(name, text string, bytes []byte) (string, error) {
	if (text == "") == (len(bytes) == 0) {
		return "", service.Invalidf("params: want either %s or %sBytes", name, name)
	}
	return text + string(bytes), nil
}

// addFile adds a method about a file.
func addFile[Params interface {
	sandbox() string
	path() (string, error)
}](m *methodSet, name string, do func(*task, *service.Sandbox, string, Params) (any, error)) {
	addUse(m, name, func(t *task, sb *service.Sandbox, p Params) (any, error) {
		path, err := p.path()
		if err != nil {
			return nil, err
		}
		return do(t, sb, path, p)
	})
}

func addFiles(m *methodSet) {
	addFile(m, "readFile", func(t *task, sb *service.Sandbox, path string, _ FileParams) (any, error) {
		return sb.ReadFile(path, stdout{t})
	})
	addFile(m, "writeFile", writeFile)
	addFile(m, "stat", func(_ *task, sb *service.Sandbox, path string, p statParams) (any, error) {
		return sb.Stat(path, p.FileStat)
	})
	addFile(m, "listFiles", func(t *task, sb *service.Sandbox, path string, p listParams) (any, error) {
		return sb.ListFiles(t.ctx, path, p.FolderList)
	})
	addFile(m, "makeDir", func(_ *task, sb *service.Sandbox, path string, p makeParams) (any, error) {
		return nil, sb.MakeFolder(path, p.FolderMake)
	})
	addFile(m, "remove", func(_ *task, sb *service.Sandbox, path string, p removeParams) (any, error) {
		return nil, sb.Remove(path, p.FileRemove)
	})
	addUse(m, "move", move)
	addFile(m, "readTar", func(t *task, sb *service.Sandbox, path string, _ FileParams) (any, error) {
		report, err := sb.Tar(stdout{t}, path)
		return packed{report.SkippedAll}, err
	})
	addFile(m, "writeTar", writeTar)
}

// The parameters of the methods on files.
type (
	writeParams struct {
		FileParams
		service.FileWrite
	}
	statParams struct {
		FileParams
		service.FileStat
	}
	listParams struct {
		FileParams
		service.FolderList
	}
	makeParams struct {
		FileParams
		service.FolderMake
	}
	removeParams struct {
		FileParams
		service.FileRemove
	}
	unpackParams struct {
		FileParams
		service.FolderUnpack
	}
	moveParams struct {
		SandboxParams
		From      string `json:"from,omitempty" maxLength:"4095" doc:"The path of a file, a folder or a link."`
		FromBytes []byte `json:"fromBytes,omitempty" maxLength:"5460" doc:"Instead of from: its bytes in base64."`
		To        string `json:"to,omitempty" maxLength:"4095" doc:"Its new path. An existing file is replaced by a file, an empty folder by a folder."`
		ToBytes   []byte `json:"toBytes,omitempty" maxLength:"5460" doc:"Instead of to: its bytes in base64."`
	}
)

// packed is the result of readTar.
type packed struct {
	Skipped int `json:"skipped"` // files that the archive lacks
}

// writeFile writes standard input to a file.
func writeFile(t *task, sb *service.Sandbox, path string, p writeParams) (any, error) {
	body, stop := t.upload(sb)
	defer stop()
	if _, err := sb.WriteFile(path, body, p.FileWrite); err != nil {
		return nil, err
	}
	return sb.Stat(path, service.FileStat{})
}

// writeTar unpacks standard input, which is an archive.
func writeTar(t *task, sb *service.Sandbox, path string, p unpackParams) (any, error) {
	body, stop := t.upload(sb)
	defer stop()
	return sb.Untar(body, path, p.FolderUnpack)
}

func move(_ *task, sb *service.Sandbox, p moveParams) (any, error) {
	from, err := exactPath("from", p.From, p.FromBytes)
	if err != nil {
		return nil, err
	}
	to, err := exactPath("to", p.To, p.ToBytes)
	if err != nil {
		return nil, err
	}
	return nil, sb.Move(from, to)
}
