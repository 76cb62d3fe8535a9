// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// bytesOfManifest is how large a manifest may be. The API server takes no pod of 2 MiB.
	bytesOfManifest = 1 << 20
	// whatIfTime is how long a request may take in all, and whatIfsWaiting how many may wait.
	whatIfTime     = 10 * time.Second
	whatIfsWaiting = 8
	// whatIfShare is the most of a scheduler's time that goes to what-ifs: one in so many seconds.
	whatIfShare = 20
)

// A RequestError is an answer to a request that cannot be served.
type RequestError struct {
	// Code is of HTTP.
	Code int
	// What says what is wrong, and Next what to do.
	What, Next string
}

func (e *RequestError) Error() string { return e.What + "; next: " + e.Next }

// whatIfs lets one what-if be found at a time, and none for a while after one that held up scheduling.
type whatIfs struct {
	waiting, place chan struct{}
	next           time.Time
}

// find waits for its turn, and finds what would become of a pod.
func (r *Recorder) find(ctx context.Context, pod *v1.Pod, all bool) (*WhatIf, error) {
	if r.Sources.WhatIf == nil {
		return nil, &RequestError{http.StatusNotImplemented, "this scheduler cannot tell what would become of a pod", "GET " + PodsPath}
	}
	ctx, cancel := context.WithTimeout(ctx, whatIfTime)
	defer cancel()
	busy := &RequestError{http.StatusTooManyRequests, "too many ask what would become of a pod", "ask again in some seconds"}
	select {
	case r.whatIfs.waiting <- struct{}{}:
		defer func() { <-r.whatIfs.waiting }()
	default:
		return nil, busy
	}
	select {
	case r.whatIfs.place <- struct{}{}:
		defer func() { <-r.whatIfs.place }()
	case <-ctx.Done():
		return nil, busy
	}
	timer := time.NewTimer(time.Until(r.whatIfs.next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, busy
	}
	answer, err := r.Sources.WhatIf(ctx, pod, all)
	if err != nil {
		return nil, err
	}
	r.whatIfs.next = time.Now().Add(time.Duration(answer.Seconds * (whatIfShare - 1) * float64(time.Second)))
	return answer, nil
}

// podOf is the pod that a request is about.
func (r *Recorder) podOf(w http.ResponseWriter, request *http.Request) (*v1.Pod, error) {
	if request.Method != http.MethodPost {
		named := request.URL.Query().Get("pod")
		parts := strings.Split(named, "/")
		if len(parts) != 2 {
			return nil, &RequestError{http.StatusBadRequest, fmt.Sprintf("pod=%s is not NAMESPACE/NAME", short(named)),
				"GET " + WhatIfPath + "?pod=NAMESPACE/NAME, or POST a manifest"}
		}
		found, err := r.Sources.Pods.Pods(parts[0]).Get(parts[1])
		if err != nil {
			return nil, &RequestError{http.StatusNotFound, fmt.Sprintf("there is no pod %s", short(named)), "kubectl get pods -A"}
		}
		if found.Spec.NodeName != "" {
			return nil, &RequestError{http.StatusConflict, fmt.Sprintf("pod %s is bound to node %s", short(named), found.Spec.NodeName),
				"GET " + PodsPath + "/" + short(named) + " says why"}
		}
		return found.DeepCopy(), nil
	}
	var content []byte
	var err error
	body := http.MaxBytesReader(w, request.Body, bytesOfManifest)
	if strings.HasPrefix(request.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		request.Body = body
		err = request.ParseForm()
		content = []byte(request.PostForm.Get("manifest"))
	} else {
		content, err = io.ReadAll(body)
	}
	if err != nil {
		return nil, &RequestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the manifest cannot be read: %v", err),
			fmt.Sprintf("send a manifest of less than %d KiB", bytesOfManifest>>10)}
	}
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(content, nil, nil)
	pod, ok := object.(*v1.Pod)
	if err != nil || !ok {
		what := fmt.Sprintf("the manifest is a %T", object)
		if err != nil {
			what = "the manifest cannot be decoded: " + short(err.Error())
		}
		return nil, &RequestError{http.StatusBadRequest, what, "send one Pod of v1, as JSON or YAML"}
	}
	complete(pod)
	return pod, nil
}

// complete sets what the API server would, as far as scheduling depends on it.
func complete(pod *v1.Pod) {
	pod.UID, pod.Spec.NodeName, pod.Status = "what-if", "", v1.PodStatus{}
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.Name == "" {
		pod.Name = pod.GenerateName + "what-if"
	}
	if pod.Spec.SchedulerName == "" {
		pod.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	for _, containers := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			resources := &containers[i].Resources
			for name, limit := range resources.Limits {
				if _, requested := resources.Requests[name]; requested {
					continue
				}
				if resources.Requests == nil {
					resources.Requests = v1.ResourceList{}
				}
				resources.Requests[name] = limit
			}
			if pod.Spec.HostNetwork {
				for j := range containers[i].Ports {
					containers[i].Ports[j].HostPort = containers[i].Ports[j].ContainerPort
				}
			}
		}
	}
}

// Summarize says in a sentence or two what a what-if has come to.
func (w *WhatIf) Summarize() {
	if w.Result != Fits {
		reasons := make([]string, 0, len(w.Rejections))
		for _, r := range w.Rejections {
			reasons = append(reasons, fmt.Sprintf("%d: %s", r.Nodes, strings.Join(r.Reasons, ", ")))
		}
		w.Summary = noneFits(w.Nodes, w.Nodes, reasons)
		if p := w.Preemption; p != nil && p.Node != "" {
			w.Summary += fmt.Sprintf(" Preemption would evict %s from node %s.", counted(p.VictimCount, "pod"), p.Node)
		}
		return
	}
	switch {
	case w.Ties > 1:
		w.Summary = fmt.Sprintf("It would go to one of %d nodes with the same score, such as %s.", w.Ties, w.Node)
	default:
		w.Summary = fmt.Sprintf("It would go to node %s.", w.Node)
	}
	w.Summary += fmt.Sprintf(" %d of %s would take it.", w.Feasible, counted(w.Nodes, "node"))
}

func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
