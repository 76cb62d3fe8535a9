// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kube-scheduler-fork/build/nextstep"
	"kube-scheduler-fork/build/schedulerpod"
)

// OtherFile is the result for one file in the static pod directory.
type OtherFile struct {
	// Serious reports whether the file makes a swap fail: its pod also runs kube-scheduler, or has its name.
	Serious bool
	// Explanation is a sentence for the operator without its full stop, and Next is the next step. Both are empty if
	// the file needs no action: kubelet ignores it, because its name begins with a dot, or it is an ordinary static pod.
	Explanation, Next string
}

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
	if strings.HasPrefix(name, ".") {
		return OtherFile{}
	}
	report := func(serious bool, format string, arguments ...any) OtherFile {
		return OtherFile{serious, fmt.Sprintf(format, arguments...), fmt.Sprintf("move %s out of the manifests directory", name)}
	}
	pod, err := decodeOther(content)
	if err != nil {
		// Drop the error's next step: it is meant for the scheduler's manifest.
		reason, _ := nextstep.Split(err, "")
		return report(false, "kubelet cannot run %s and logs an error for it every time it reads the directory: %s", name,
			strings.Replace(reason, "the manifest ", "it ", 1))
	}
	found := schedulerpod.Find(pod)
	switch {
	case pod.Name == scheduler.Object.Name && pod.Namespace == scheduler.Object.Namespace:
		return report(true, "%s contains a pod with the scheduler's own name, %s/%s: kubelet runs only one of the two, "+
			"the one that it read last", name, pod.Namespace, pod.Name)
	case len(found) > 0 && found[0].Sure:
		return report(true, "%s contains a second kube-scheduler, in container %q of pod %s/%s: "+
			"both use the same port and the same lease", name, found[0].Container().Name, pod.Namespace, pod.Name)
	case backupName.MatchString(name):
		return report(false, "%s looks like a backup copy, but kubelet runs every pod in the directory, under any "+
			"file name: this one is %s/%s", name, pod.Namespace, pod.Name)
	}
	return OtherFile{}
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
