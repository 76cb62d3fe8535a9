// SPDX-License-Identifier: Apache-2.0

package records

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
)

const (
	// bytesOfManifest limits the size of a manifest in bytes, bytesOfPod that of a pod.
	bytesOfManifest, bytesOfPod = 1 << 20, 256 << 10
	// timeOfManifest limits the time in which a manifest must arrive.
	timeOfManifest = 5 * time.Second
	// valuesOfManifest limits the objects and lists in a manifest, and valuesOfPod those in a pod, because each becomes
	// larger than its text.
	valuesOfManifest, valuesOfPod = 4 * 4096, 4096
	// termsOfManifest limits the terms and constraints of a pod that are compared with all pods.
	termsOfManifest = 64
	// podsOfManifest limits the pods of a gang. bytesOfGang and valuesOfGang limit what they have together, because the
	// scheduler copies each pod.
	podsOfManifest            = 1024
	bytesOfGang, valuesOfGang = 8 << 20, 1 << 16
)

// podsOf reads a request, and returns a function that finds or decodes its pods.
func (r *Recorder) podsOf(request *http.Request) (func() (GangRequest, error), error) {
	if request.Method != http.MethodPost {
		return func() (GangRequest, error) {
			pod, err := r.pending(request.URL.Query().Get("pod"))
			return GangRequest{Pending: pod}, err
		}, nil
	}
	if kind, _, _ := mime.ParseMediaType(request.Header.Get("Content-Type")); kind != "application/json" {
		return nil, answers.Refuse(http.StatusUnsupportedMediaType, fmt.Sprintf("the manifest has the content type %q", short(kind)),
			"send it as JSON, with the header Content-Type: application/json: kubectl create --dry-run=client --output json prints it")
	}
	content, err := readBody(request)
	if err != nil {
		return nil, err
	}
	return func() (GangRequest, error) { return decode(content) }, nil
}

// readBody reads a manifest within timeOfManifest. The connection of a slow sender stays open until it leaves, like an
// idle one.
func readBody(request *http.Request) ([]byte, error) {
	type body struct {
		content []byte
		err     error
	}
	read := make(chan body, 1)
	go func() {
		content, err := io.ReadAll(io.LimitReader(request.Body, bytesOfManifest+1))
		read <- body{content, err}
	}()
	timer := time.NewTimer(timeOfManifest)
	defer timer.Stop()
	next := fmt.Sprintf("send a manifest of at most %d KiB within %v", bytesOfManifest>>10, timeOfManifest)
	select {
	case got := <-read:
		switch {
		case got.err != nil:
			return nil, answers.Refuse(http.StatusBadRequest, fmt.Sprintf("the manifest cannot be read: %v", got.err), next)
		case len(got.content) > bytesOfManifest:
			return nil, answers.Refuse(http.StatusRequestEntityTooLarge, "the manifest is too large", next)
		}
		return got.content, nil
	case <-timer.C:
		return nil, answers.Refuse(http.StatusRequestTimeout, "the manifest arrives too slowly", next)
	}
}

// pending returns a pod without a node, by NAMESPACE/NAME.
func (r *Recorder) pending(named string) (*v1.Pod, error) {
	parts := strings.Split(named, "/")
	if len(parts) != 2 {
		return nil, answers.Refuse(http.StatusBadRequest, fmt.Sprintf("pod=%s is not NAMESPACE/NAME", short(named)),
			"GET "+WhatIfPath+"?pod=NAMESPACE/NAME, or POST a manifest")
	}
	named = short(named)
	found, err := r.Sources.Pods.Pods(parts[0]).Get(parts[1])
	refuse := func(code int, message, next string) error {
		return answers.Refuse(code, message, next).About("pods", named)
	}
	switch {
	case err != nil:
		return nil, refuse(http.StatusNotFound, "there is no pod "+named, "kubectl get pods --all-namespaces")
	case found.Spec.NodeName != "":
		return nil, refuse(http.StatusConflict, fmt.Sprintf("pod %s is bound to node %s", named, found.Spec.NodeName),
			"GET "+PodsPath+"/"+named)
	case found.DeletionTimestamp != nil || found.Status.Phase == v1.PodSucceeded || found.Status.Phase == v1.PodFailed:
		return nil, refuse(http.StatusConflict, fmt.Sprintf("pod %s has ended, or is being deleted, and is not scheduled", named),
			"send a manifest")
	}
	return found.DeepCopy(), nil
}

// checkSize returns an error for what is too large to be decoded.
func checkSize(content []byte, what string, mostBytes, mostValues int) error {
	if len(content) > mostBytes {
		return answers.Refuse(http.StatusRequestEntityTooLarge, what+" is too large", fmt.Sprintf("send one of at most %d KiB", mostBytes>>10))
	}
	if values := valuesOf(content); values > mostValues {
		return answers.Refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("%s has %d objects and lists", what, values),
			fmt.Sprintf("send one with at most %d", mostValues))
	}
	return nil
}

// valuesOf returns the number of objects and lists in JSON, or more.
func valuesOf(content []byte) int {
	return bytes.Count(content, []byte("{")) + bytes.Count(content, []byte("["))
}

// decodePod returns the pod of a manifest.
func decodePod(content []byte) (*v1.Pod, error) {
	if err := checkSize(content, "a pod of the manifest", bytesOfPod, valuesOfPod); err != nil {
		return nil, err
	}
	pod := &v1.Pod{}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(pod)
	if err == nil && decoder.More() {
		err = errors.New("it has several documents")
	}
	if err != nil || pod.Kind != "Pod" || pod.APIVersion != "v1" {
		message := fmt.Sprintf("the manifest is of kind %q in version %q", short(pod.Kind), short(pod.APIVersion))
		if err != nil {
			message = "the manifest cannot be decoded: " + short(err.Error())
		}
		return nil, answers.Refuse(http.StatusBadRequest, message, "send one Pod of v1, or a List of them, as JSON")
	}
	if pod.Spec.PriorityClassName != "" && pod.Spec.Priority == nil {
		return nil, answers.Refuse(http.StatusBadRequest,
			"the manifest has a priorityClassName and no priority, which the API server adds",
			"set spec.priority to the value of the class: kubectl get priorityclass")
	}
	pod.Spec.SchedulerName = short(pod.Spec.SchedulerName)
	if pod.Spec.NodeName != "" {
		return nil, answers.Refuse(http.StatusBadRequest, "the manifest sets spec.nodeName, so no scheduler would schedule it",
			"remove it, and send the manifest again")
	}
	if terms := termsOf(&pod.Spec); terms > termsOfManifest {
		return nil, answers.Refuse(http.StatusBadRequest,
			fmt.Sprintf("the manifest has %d terms of pod affinity and topology spread constraints", terms),
			fmt.Sprintf("send one with at most %d", termsOfManifest))
	}
	if err := complete(pod); err != nil {
		return nil, answers.Refuse(http.StatusBadRequest, "the manifest is not a valid pod: "+short(err.Error()),
			"correct it, and send it again")
	}
	return pod, nil
}

// termsOf returns the number of terms and constraints that are compared with all pods.
func termsOf(spec *v1.PodSpec) int {
	terms := len(spec.TopologySpreadConstraints)
	if spec.Affinity == nil {
		return terms
	}
	if a := spec.Affinity.PodAffinity; a != nil {
		terms += len(a.RequiredDuringSchedulingIgnoredDuringExecution) + len(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if a := spec.Affinity.PodAntiAffinity; a != nil {
		terms += len(a.RequiredDuringSchedulingIgnoredDuringExecution) + len(a.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	return terms
}

// complete sets defaults and validates the pod like the API server, because plugins rely on both.
func complete(pod *v1.Pod) error {
	pod.UID, pod.Status = "what-if", v1.PodStatus{}
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
