// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"container/list"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	yamlv2 "gopkg.in/yaml.v2"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/whatif"
	"sigs.k8s.io/yaml"
)

const (
	// bytesOfManifest is the maximum size of a manifest.
	bytesOfManifest = 256 << 10
	// whatIfTime is the maximum duration of a request including its wait, and whatIfsWaiting the maximum number of
	// waiting requests.
	whatIfTime     = 10 * time.Second
	whatIfsWaiting = 8
	// whatIfShare limits dry runs to one in whatIfShare seconds of a scheduler's time.
	whatIfShare = 20
	// whatIfMost is the maximum that is counted for one dry run, so that others do not wait for long.
	whatIfMost = time.Second / 4
	// sizeOfValue is the size that each value in a manifest counts for in addition to its text: values become objects
	// that are validated.
	sizeOfValue = 64
)

// RequestError is the answer to a request that cannot be served.
type RequestError struct {
	// Code is the HTTP status code.
	Code int
	// What describes the problem, and Next the next step.
	What, Next string
}

func (e *RequestError) Error() string { return e.What + "; next: " + e.Next }

// whatIfs admits one dry run at a time, and pauses after each in proportion to its duration.
type whatIfs struct {
	waiting, place chan struct{}
	next           time.Time
}

// find waits for its turn and dry-runs scheduling for the pod that ask returns.
func (r *Recorder) find(ctx context.Context, ask func() (*v1.Pod, error), all bool) (*WhatIf, error) {
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
	// The whole duration counts, including decoding and failures, not only the time that scheduling is held up.
	began := time.Now()
	defer func() {
		took := time.Since(began)
		if took > whatIfMost {
			took = whatIfMost
		}
		r.whatIfs.next = time.Now().Add((whatIfShare - 1) * took)
	}()
	pod, err := ask()
	if err != nil {
		return nil, err
	}
	answer, held, err := r.Sources.WhatIf(ctx, pod, all)
	if err != nil {
		return nil, err
	}
	answer.Seconds = held.Seconds()
	answer.Summary = r.clean(answer.Summary)
	return answer, nil
}

// Draft returns a recorder for one attempt that is not kept.
func (r *Recorder) Draft() *Recorder {
	return &Recorder{
		Sources: Sources{Explainers: r.Sources.Explainers}, options: Options{Pods: 1, Bytes: 1 << 40}, now: r.now,
		plugins: make(map[string][]Plugin), pods: make(map[types.UID]*list.Element), order: list.New(), extenders: make(map[string]string),
	}
}

// Try begins an attempt of a Draft, or continues it with another CycleState.
func (r *Recorder) Try(a *Attempt, state *framework.CycleState, p *v1.Pod, profile string, nodes int) *Attempt {
	whatif.Mark(state)
	if a == nil {
		return r.Begin(state, p, profile, nodes)
	}
	a.state = state
	state.Write(stateKey, a)
	return a
}

// Finish ends an attempt of a Draft and returns its decision.
func (a *Attempt) Finish(p *v1.Pod, feasible int) Decision {
	a.recorder.End(a, p, "", a.nodes, feasible, nil)
	return a.Decision()
}

// asked reads the request, and returns a function that finds or decodes the requested pod.
func (r *Recorder) asked(w http.ResponseWriter, request *http.Request) (func() (*v1.Pod, error), error) {
	if request.Method != http.MethodPost {
		return func() (*v1.Pod, error) { return r.waits(request.URL.Query().Get("pod")) }, nil
	}
	content, err := io.ReadAll(http.MaxBytesReader(w, request.Body, bytesOfManifest))
	if err != nil {
		return nil, &RequestError{http.StatusRequestEntityTooLarge, fmt.Sprintf("the manifest cannot be read: %v", err),
			fmt.Sprintf("send a manifest of less than %d KiB", bytesOfManifest>>10)}
	}
	content = manifest(request, content)
	return func() (*v1.Pod, error) { return decode(content) }, nil
}

// waits returns a pending pod.
func (r *Recorder) waits(named string) (*v1.Pod, error) {
	parts := strings.Split(named, "/")
	if len(parts) != 2 {
		return nil, &RequestError{http.StatusBadRequest, fmt.Sprintf("pod=%s is not NAMESPACE/NAME", short(named)),
			"GET " + WhatIfPath + "?pod=NAMESPACE/NAME, or POST a manifest"}
	}
	found, err := r.Sources.Pods.Pods(parts[0]).Get(parts[1])
	switch {
	case err != nil:
		return nil, &RequestError{http.StatusNotFound, fmt.Sprintf("there is no pod %s", short(named)), "kubectl get pods -A"}
	case found.Spec.NodeName != "":
		return nil, &RequestError{http.StatusConflict, fmt.Sprintf("pod %s is bound to node %s", short(named), found.Spec.NodeName),
			"GET " + PodsPath + "/" + short(named) + " says why"}
	case found.DeletionTimestamp != nil || found.Status.Phase == v1.PodSucceeded || found.Status.Phase == v1.PodFailed:
		return nil, &RequestError{http.StatusConflict, fmt.Sprintf("pod %s has ended, or is being deleted, and is not scheduled", short(named)),
			"send a manifest"}
	}
	return found.DeepCopy(), nil
}

// decode returns the pod in a manifest.
func decode(content []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	// JSON is not quite a subset of YAML.
	isJSON := json.Valid(content)
	err := checkSize(content, isJSON)
	switch {
	case err != nil:
	case isJSON:
		decoder := json.NewDecoder(bytes.NewReader(content))
		decoder.DisallowUnknownFields()
		err = decoder.Decode(pod)
	case bytes.Contains(content, []byte("\n---")):
		err = errors.New("it has several documents")
	default:
		err = yaml.UnmarshalStrict(content, pod)
	}
	if err != nil || pod.Kind != "Pod" || pod.APIVersion != "v1" {
		what := fmt.Sprintf("the manifest is of kind %q of %q", short(pod.Kind), short(pod.APIVersion))
		if err != nil {
			what = "the manifest cannot be decoded: " + short(err.Error())
		}
		return nil, &RequestError{http.StatusBadRequest, what, "send one Pod of v1, as JSON or YAML"}
	}
	if pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil {
		return nil, &RequestError{http.StatusBadRequest, "the manifest names a priorityClassName and no priority, which the API server adds",
			"set spec.priority to the value of the class: kubectl get priorityclass"}
	}
	if err := complete(pod); err != nil {
		return nil, &RequestError{http.StatusBadRequest, "the manifest is no valid pod: " + short(err.Error()), "correct it, and send it again"}
	}
	return pod, nil
}

// checkSize returns an error for a manifest that is much larger in memory than its text, because of aliases or many
// small values.
func checkSize(content []byte, isJSON bool) error {
	var decoded interface{}
	unmarshal := yamlv2.Unmarshal
	if isJSON {
		unmarshal = json.Unmarshal
	}
	if err := unmarshal(content, &decoded); err != nil {
		return err
	}
	left := 2 * bytesOfManifest
	var take func(value interface{}) bool
	take = func(value interface{}) bool {
		left -= sizeOfValue
		switch value := value.(type) {
		case string:
			left -= len(value)
		case []interface{}:
			for _, item := range value {
				if !take(item) {
					return false
				}
			}
		case map[interface{}]interface{}:
			for key, item := range value {
				if !take(key) || !take(item) {
					return false
				}
			}
		case map[string]interface{}:
			for key, item := range value {
				if !take(key) || !take(item) {
					return false
				}
			}
		}
		return left >= 0
	}
	if !take(decoded) {
		return errors.New("with what its aliases stand for, and all its values, it is too large")
	}
	return nil
}

// complete sets the API server's defaults and validates the pod as it would, which plugins rely on.
func complete(pod *v1.Pod) error {
	pod.UID, pod.Spec.NodeName, pod.Status = "what-if", "", v1.PodStatus{}
	if pod.Namespace == "" {
		pod.Namespace = v1.NamespaceDefault
	}
	if pod.Name == "" {
		pod.Name = pod.GenerateName + "what-if"
	}
	corev1.SetObjectDefaults_Pod(pod)
	var internal core.Pod
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod.DeepCopy(), &internal, nil); err != nil {
		return err
	}
	options := podutil.GetValidationOptionsFromPodSpecAndMeta(&internal.Spec, nil, &internal.ObjectMeta, nil)
	wrong := validation.ValidatePodCreate(&internal, options)
	if len(wrong) > 3 {
		wrong = wrong[:3]
	}
	return wrong.ToAggregate()
}

// Summarize sets the summary of a dry run, a sentence or two.
func (w *WhatIf) Summarize() {
	if w.Result == Failed {
		return
	}
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
