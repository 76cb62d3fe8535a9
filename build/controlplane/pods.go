package controlplane

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
)

// NewPod describes a small pod that asks for a scheduler; with an empty name of the scheduler it asks for none, as most
// pods do. Its container is never run.
func NewPod(name, scheduler string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceDefault},
		Spec: corev1.PodSpec{
			SchedulerName: scheduler,
			Containers: []corev1.Container{{
				Name:  "pause",
				Image: "registry.k8s.io/pause:3.6",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
			}},
		},
	}
}

// ReadPods reads the pods of a manifest, YAML or JSON, of one or more documents. Anything else than a pod is refused:
// there are no controllers here that would make pods of it.
func ReadPods(file string) ([]*corev1.Pod, error) {
	manifest, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the manifest: %w; next: give a file that exists", err)
	}
	defer manifest.Close()
	var pods []*corev1.Pod
	documents := yaml.NewYAMLReader(bufio.NewReader(manifest))
	decoder := scheme.Codecs.UniversalDeserializer()
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w; next: correct it", file, err)
		}
		json, err := yaml.ToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w; next: correct it", file, number, err)
		}
		if string(json) == "null" {
			continue
		}
		object, kind, err := decoder.Decode(json, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("%s, document %d: %w; next: correct it", file, number, err)
		}
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, fmt.Errorf("%s, document %d is a %s: only pods can be created here, because no controller runs; "+
				"next: write the pod itself, kind: Pod", file, number, kind.Kind)
		}
		if pod.Spec.NodeName != "" {
			return nil, fmt.Errorf("%s, document %d: the pod names its node, %s, so no scheduler is asked; "+
				"next: remove spec.nodeName", file, number, pod.Spec.NodeName)
		}
		if pod.Namespace == "" {
			pod.Namespace = corev1.NamespaceDefault
		}
		pods = append(pods, pod)
	}
	if len(pods) == 0 {
		return nil, fmt.Errorf("%s holds no pod; next: give a manifest with kind: Pod", file)
	}
	return pods, nil
}
