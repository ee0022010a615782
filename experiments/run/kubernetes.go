package run

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Kubernetes makes an Indexed Job: see
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#completion-mode.
type Kubernetes struct {
	Image string // of a release of this program
	Claim string // persistent volume claim that holds the working folder
}

// Grammars of Kubernetes: see https://pkg.go.dev/github.com/distribution/reference and
// https://kubernetes.io/docs/concepts/overview/working-with-objects/names/.
var (
	label        = `[a-z0-9]([a-z0-9-]*[a-z0-9])?`
	hostPart     = `[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?`
	host         = hostPart + `(\.` + hostPart + `)*|\[[0-9a-fA-F:]+\]`
	pathPart     = `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
	claimGrammar = regexp.MustCompile(`^` + label + `(\.` + label + `)*$`)
	imageGrammar = regexp.MustCompile(`^((` + host + `)(:[0-9]+)?/)?` +
		pathPart + `(/` + pathPart + `)*(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?` +
		`(@[A-Za-z][A-Za-z0-9]*([-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?$`)
)

// Check refuses an image or a claim that Kubernetes would refuse.
func (k Kubernetes) Check() error {
	const longest = 253 // bytes of a name
	switch {
	case !imageGrammar.MatchString(k.Image):
		return fmt.Errorf("image %q: no reference to an image; want REGISTRY/NAME:TAG, as in "+
			"registry.example/sparseserve:1.0", k.Image)
	case len(k.Claim) > longest || !claimGrammar.MatchString(k.Claim):
		return fmt.Errorf("claim %q: no name of a claim; want lower-case letters, digits, - and ., "+
			"at most %d of them", k.Claim, longest)
	}
	return nil
}

// Folder implements Cluster.
func (Kubernetes) Folder() string { return "kubernetes" }

// File implements Cluster. kubectl reads JSON as well as YAML.
func (Kubernetes) File() string { return "job.json" }

// object is a JSON object of the manifest.
type object map[string]any

// Text implements Cluster. The working folder has the same path in the container. The job may only
// read and write files below it.
func (k Kubernetes) Text(j *Job) ([]byte, error) {
	for _, a := range j.Args[1:] {
		if rel, err := filepath.Rel(j.WorkDir, a); filepath.IsAbs(a) &&
			(err != nil || strings.HasPrefix(rel, "..")) ||
			strings.HasPrefix(filepath.Clean(a), "..") {
			return nil, fmt.Errorf("%s is outside %s, which is all that a pod has; run the command "+
				"further up", a, j.WorkDir)
		}
	}
	container := object{
		"name": "points", "image": k.Image, "args": j.Args, "workingDir": j.WorkDir,
		"resources":    object{"requests": object{"cpu": "1", "memory": "1Gi"}},
		"volumeMounts": []object{{"name": "work", "mountPath": j.WorkDir}},
	}
	pod := object{
		"restartPolicy": "OnFailure",
		"containers":    []object{container},
		"volumes": []object{
			{"name": "work", "persistentVolumeClaim": object{"claimName": k.Claim}}},
	}
	manifest := object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": podName(j.Name)},
		"spec": object{
			"completionMode": "Indexed", "completions": j.Tasks, "parallelism": j.Tasks,
			"template": object{"spec": pod},
		},
	}
	text, err := json.MarshalIndent(manifest, "", "  ")
	return append(text, '\n'), err
}

// podName returns a name that follows the rules of DNS labels: lower-case letters, digits and -, at
// most 63 characters minus 5 for an index.
func podName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	if name = strings.Trim(name, "-"); len(name) > 57 {
		name = strings.Trim(name[:57], "-")
	}
	if name == "" {
		return "sweep"
	}
	return name
}
