package sandboxtools

// The structs below define the arguments of the tools. Decoding, validation and the JSON
// Schemas are all derived from their tags: `json` is the name, `about` the description, and
// `rule` lists the constraints that [fieldsOf] documents.

// InitArgs are the arguments of sandbox_init.
type InitArgs struct {
	ContainerID    string `json:"containerId" rule:"max=64 pattern=name" about:"The id of the new sandbox, which must be unique. If omitted or empty, an id is generated."`
	ImageName      string `json:"imageName" rule:"max=4095" about:"An image of the store: a name, an id, or a unique prefix of an id. Or a registry reference or a path, exactly as the host lists it. If omitted or empty, the default image is used."`
	ContainerName  string `json:"containerName" rule:"max=64 pattern=name" about:"A display name. It becomes the guest's host name if it is a valid one: letters, digits, dots and hyphens."`
	ProjectOutPath string `json:"projectOutPath" rule:"max=4095" about:"A folder on the host that the guest reads and writes at /<rootPath>. It is created if missing. If omitted or empty, the files are deleted with the sandbox."`
	RootPath       string `json:"rootPath" rule:"max=255 pattern=root default=workspace" about:"The guest's working directory, below /. Relative paths start there."`
}

// DestroyArgs are the arguments of sandbox_destroy.
type DestroyArgs struct {
	ContainerID     string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	RemoveContainer *bool  `json:"removeContainer" rule:"default=true" about:"If false, running commands are killed and no more can start, but the files remain usable until the sandbox is destroyed with true or expires."`
}

// CommandArgs are the arguments of sandbox_command. The runtime's limit on variables is twice
// the total here: the other half is left for the sandbox's own.
type CommandArgs struct {
	ContainerID      string   `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Executable       string   `json:"executable" rule:"required min=1 max=4095" about:"A program in the guest: a path, or a name that is looked up in PATH. No shell is used."`
	Args             []string `json:"args" rule:"max=131071 items=8192 total=786432" about:"The arguments, passed unchanged."`
	WorkingDirectory string   `json:"workingDirectory" rule:"path max=4095 default=." about:"The folder to start in, absolute or relative to /<rootPath>, which is the default."`
	EnvVars          []string `json:"envVars" rule:"min=2 max=131070 items=1024 total=393216 pattern=env" about:"Environment variables as K=V. They override those of the sandbox; the last of several with the same name wins."`
	Timeout          int64    `json:"timeout" rule:"min=1 max=3600000 default=30000" about:"Milliseconds after which the command is killed."`
}

// WriteFileArgs are the arguments of sandbox_write_file.
type WriteFileArgs struct {
	ContainerID      string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path             string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>."`
	Content          string `json:"content" rule:"required max=22369624 nul" about:"The new content of the file, at most 16 MiB."`
	Encoding         string `json:"encoding" rule:"enum=utf8|base64 default=utf8" about:"The encoding of content: text, or bytes as base64 with padding."`
	CreateParentDirs bool   `json:"createParentDirs" rule:"default=false" about:"Create missing parent folders."`
}

// ReadFileArgs are the arguments of sandbox_read_file.
type ReadFileArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>. The file may have at most 16 MiB."`
	Encoding    string `json:"encoding" rule:"enum=utf8|base64 default=utf8" about:"The encoding of the result. A file that is not valid UTF-8 is always returned as base64: the result says which encoding it has."`
}

// ListDirectoryArgs are the arguments of sandbox_list_directory.
type ListDirectoryArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A folder in the guest, absolute or relative to /<rootPath>."`
	Recursive   bool   `json:"recursive" rule:"default=false" about:"List subfolders too. Links are not followed."`
}

// CreateDirectoryArgs are the arguments of sandbox_create_directory.
type CreateDirectoryArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>."`
	Recursive   bool   `json:"recursive" rule:"default=false" about:"Create missing parent folders, and succeed if the folder exists."`
}

// DeleteArgs are the arguments of sandbox_delete.
type DeleteArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>. A link is removed, not its target."`
	Recursive   bool   `json:"recursive" rule:"default=false" about:"Remove a folder with its content. Otherwise a folder must be empty."`
	Force       bool   `json:"force" rule:"default=false" about:"Succeed if the path does not exist."`
}

// ExistsArgs are the arguments of sandbox_exists.
type ExistsArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>."`
}

// FileInfoArgs are the arguments of sandbox_file_info.
type FileInfoArgs struct {
	ContainerID string `json:"containerId" rule:"required min=1 max=64 pattern=name" about:"The id of the sandbox."`
	Path        string `json:"path" rule:"required path min=1 max=4095" about:"A path in the guest, absolute or relative to /<rootPath>. A link is not followed."`
}
