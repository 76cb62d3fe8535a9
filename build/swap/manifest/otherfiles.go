// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// FileKind is how kubelet handles another file in its static pod directory.
type FileKind string

const (
	// IgnoredFile is a file that kubelet ignores, because its name begins with a dot.
	IgnoredFile FileKind = "ignored"
	// OtherPod is an ordinary static pod.
	OtherPod FileKind = "other pod"
	// SecondScheduler is a pod that also runs kube-scheduler, or has its name. It makes a swap fail.
	SecondScheduler FileKind = "second scheduler"
	// BackupPod is a pod in a file named like a backup copy; kubelet runs it nevertheless.
	BackupPod FileKind = "backup pod"
	// Unreadable is a file that kubelet cannot run; it repeatedly logs an error for it.
	Unreadable FileKind = "unreadable"
)

// OtherFile is the result for one file in the static pod directory.
type OtherFile struct {
	Name string
	Kind FileKind
	// Explanation is a sentence for the operator without its full stop, and Next is the next step. Both are empty if
	// there is nothing to report.
	Explanation, Next string
}

// Serious reports whether the file makes a swap fail.
func (f OtherFile) Serious() bool { return f.Kind == SecondScheduler }

// Harmless reports whether the file needs no action.
func (f OtherFile) Harmless() bool { return f.Kind == IgnoredFile || f.Kind == OtherPod }

// backupName matches the usual file names for copies by editors, package managers and people.
var backupName = regexp.MustCompile(`(?i)(` +
	`~|#|` +
	`\.(bak|backup|old|orig|original|save|saved|copy|prev|previous|disabled|swp|swo|rej|tmp|rpmsave|rpmnew|rpmorig|` +
	`(dpkg|ucf)-(old|new|dist|bak|tmp))([.~_-].*)?|` +
	`\.[0-9-]+|` +
	`[._-][0-9]{8}.*|` +
	`[ _-](backup|bak|old|orig|copy)[0-9]*\.(yaml|yml|json)` +
	`)$`)

// ClassifyFile classifies another file in the directory of the scheduler's manifest, by its name and content.
func ClassifyFile(name string, content []byte, scheduler Pod) OtherFile {
	file := OtherFile{Name: path.Base(name)}
	if strings.HasPrefix(file.Name, ".") {
		file.Kind = IgnoredFile
		return file
	}
	file.Next = fmt.Sprintf("move %s out of the manifests directory", file.Name)
	pod, err := decodeOther(content)
	if err != nil {
		file.Kind = Unreadable
		// Drop the error's next step: it is meant for the scheduler's manifest.
		reason, _ := nextstep.Split(err, "")
		file.Explanation = fmt.Sprintf("kubelet cannot run %s and logs an error for it every time it reads the directory: %s", file.Name,
			strings.Replace(reason, "the manifest ", "it ", 1))
		return file
	}
	found := schedulerpod.Find(pod)
	switch {
	case pod.Name == scheduler.Name && pod.Namespace == scheduler.Namespace:
		file.Kind = SecondScheduler
		file.Explanation = fmt.Sprintf("%s contains a pod with the scheduler's own name, %s/%s: kubelet runs only one of the two, "+
			"the one that it read last", file.Name, pod.Namespace, pod.Name)
	case len(found) > 0 && found[0].Sure:
		file.Kind = SecondScheduler
		file.Explanation = fmt.Sprintf("%s contains a second kube-scheduler, in container %q of pod %s/%s: "+
			"both use the same port and the same lease", file.Name, found[0].Container().Name, pod.Namespace, pod.Name)
	case backupName.MatchString(file.Name):
		file.Kind = BackupPod
		file.Explanation = fmt.Sprintf("%s looks like a backup copy, but kubelet runs every pod in the directory, under any "+
			"file name: this one is %s/%s", file.Name, pod.Namespace, pod.Name)
	default:
		file.Kind, file.Next = OtherPod, ""
	}
	return file
}

// decodeOther decodes a file as kubelet does.
func decodeOther(content []byte) (*corev1.Pod, error) {
	switch {
	case len(content) > maxManifest:
		return nil, fmt.Errorf("it has more than %d bytes", maxManifest)
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errors.New("it is empty")
	}
	pod, err := decodePod(content)
	if err == nil && len(pod.Spec.Containers) == 0 {
		err = errors.New("it has no containers")
	}
	return pod, err
}
