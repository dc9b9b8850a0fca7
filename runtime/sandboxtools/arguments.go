package sandboxtools

// The structs below define the arguments of the tools. Package schema decodes and checks them by their tags, and
// derives the JSON Schemas.

// InitArgs are the arguments of sandbox_init.
type InitArgs struct {
	ContainerID    string `json:"containerId,omitempty" maxLength:"64" pattern:"^([A-Za-z0-9][A-Za-z0-9_.-]*)?$" doc:"The id of the new sandbox, which must be unique. If omitted or empty, an id is generated."`
	ImageName      string `json:"imageName,omitempty" maxLength:"4095" pattern:"^[^\\x00]*$" doc:"An image of the store: a name, an id, or a unique prefix of an id. Or a registry reference or a path, exactly as the host lists it. If omitted or empty, the default image is used."`
	ContainerName  string `json:"containerName,omitempty" maxLength:"64" pattern:"^([A-Za-z0-9][A-Za-z0-9_.-]*)?$" doc:"A display name. It becomes the guest's host name if it is a valid one: letters, digits, dots and hyphens."`
	ProjectOutPath string `json:"projectOutPath,omitempty" maxLength:"4095" pattern:"^[^\\x00]*$" doc:"A folder on the host that the guest reads and writes at /<rootPath>. It is created if missing. If omitted or empty, the files are deleted with the sandbox."`
	RootPath       string `json:"rootPath,omitempty" maxLength:"255" pattern:"^([A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*)?$" default:"workspace" doc:"The guest's working directory, below /. Relative paths start there."`
}

// InSandbox names the sandbox of a call.
type InSandbox struct {
	ContainerID string `json:"containerId" minLength:"1" maxLength:"64" pattern:"^[A-Za-z0-9][A-Za-z0-9_.-]*$" doc:"The id of the sandbox."`
}

// InFile names a file.
type InFile struct {
	InSandbox
	Path string `json:"path" minLength:"1" maxLength:"4095" pattern:"^[^\\x00]*$" doc:"A path in the guest, absolute or relative to /<rootPath>."`
}

// DestroyArgs are the arguments of sandbox_destroy.
type DestroyArgs struct {
	InSandbox
	RemoveContainer *bool `json:"removeContainer,omitempty" default:"true" doc:"If false, running commands are killed and no more can start, but the files remain usable until the sandbox is destroyed with true or expires."`
}

// CommandArgs are the arguments of sandbox_command.
type CommandArgs struct {
	InSandbox
	Executable       string   `json:"executable" minLength:"1" maxLength:"4095" pattern:"^[^\\x00]*$" doc:"A program in the guest: a path, or a name that is looked up in PATH. No shell is used."`
	Args             []string `json:"args,omitempty" maxItems:"8192" maxLength:"131071" pattern:"^[^\\x00]*$" doc:"The arguments, passed unchanged."`
	WorkingDirectory string   `json:"workingDirectory,omitempty" maxLength:"4095" pattern:"^[^\\x00]*$" default:"." doc:"The folder to start in, absolute or relative to /<rootPath>, which is the default."`
	EnvVars          []string `json:"envVars,omitempty" maxItems:"1024" minLength:"2" maxLength:"131070" pattern:"^[^=\\x00]+=[^\\x00]*$" doc:"Environment variables as K=V. They override the sandbox's; the last of several with the same name wins."`
	Timeout          int64    `json:"timeout,omitempty" minimum:"1" maximum:"3600000" default:"30000" doc:"Milliseconds after which the command is killed."`
}

// WriteFileArgs are the arguments of sandbox_write_file.
type WriteFileArgs struct {
	InFile
	Content          string `json:"content" maxLength:"22369624" doc:"The new content of the file, at most 16 MiB."`
	Encoding         string `json:"encoding,omitempty" enum:"utf8,base64" default:"utf8" doc:"The encoding of content: text, or bytes as base64 with padding."`
	CreateParentDirs bool   `json:"createParentDirs,omitempty" default:"false" doc:"Create missing parent folders."`
}

// ReadFileArgs are the arguments of sandbox_read_file.
type ReadFileArgs struct {
	InFile
	Encoding string `json:"encoding,omitempty" enum:"utf8,base64" default:"utf8" doc:"The encoding of the result. A file that is not valid UTF-8 is always returned as base64: the result names the encoding. The file may have at most 16 MiB."`
}

// ListDirectoryArgs are the arguments of sandbox_list_directory.
type ListDirectoryArgs struct {
	InFile
	Recursive bool `json:"recursive,omitempty" default:"false" doc:"List subfolders too. Links are not followed."`
}

// CreateDirectoryArgs are the arguments of sandbox_create_directory.
type CreateDirectoryArgs struct {
	InFile
	Recursive bool `json:"recursive,omitempty" default:"false" doc:"Create missing parent folders, and succeed if the folder exists."`
}

// DeleteArgs are the arguments of sandbox_delete.
type DeleteArgs struct {
	InFile
	Recursive bool `json:"recursive,omitempty" default:"false" doc:"Remove a folder with its content. Otherwise a folder must be empty."`
	Force     bool `json:"force,omitempty" default:"false" doc:"Succeed if the path does not exist."`
}
