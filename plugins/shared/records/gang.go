// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/answers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/gangs"
)

// CopiesAnnotation is the annotation of a Pod in the manifest of a gang that stands for several: their number. They have
// its name and a number, from 0.
const CopiesAnnotation = "scheduling-records/copies"

// GangRequest asks for a dry run of a gang.
type GangRequest struct {
	// Pending is a pending pod, whose whole gang is asked for. It is nil for a gang of a manifest.
	Pending *v1.Pod
	// Pods are those of a manifest, with defaults and unique names and UIDs. They take the place of the gang's waiting
	// pods. All have the same namespace, the same schedulerName, and the same value of gangs.Label.
	Pods []*v1.Pod
	// Group is the gang's object in the manifest; nil uses the one in the cluster. A GangDrafter knows what it means.
	Group *unstructured.Unstructured
}

// GangDrafter is a gangs.Source that makes a gang of a manifest.
type GangDrafter interface {
	// GangOfManifest is GangOf for the pods of a manifest, which the gang has in Waiting. Without a group, it has the
	// other fields of the gang in the cluster.
	GangOfManifest(group *unstructured.Unstructured, pods []*v1.Pod) (gang *gangs.Gang, reason string)
}

// whatIf dry-runs scheduling for a gang, or for a single pod, and also returns how long scheduling was paused.
func (r *Recorder) whatIf(ctx context.Context, request GangRequest, all bool) (*WhatIf, time.Duration, error) {
	pod := request.Pending
	if pod == nil {
		pod = request.Pods[0]
	}
	several := request.Group != nil || len(request.Pods) > 1
	if several && all {
		return nil, 0, answers.Refuse(http.StatusBadRequest, "the verdicts of all nodes are for one pod", "leave nodes=all out, or send one Pod")
	}
	var gang *GangWhatIf
	var held time.Duration
	var err error
	if pod.Labels[gangs.Label] != "" && r.Sources.WhatIfGang != nil {
		if gang, held, err = r.Sources.WhatIfGang(ctx, request); err != nil {
			return nil, held, err
		}
	}
	switch {
	case gang != nil && !all:
		return gang.answer(pod), held, nil
	case several && gang == nil:
		return nil, held, answers.Refuse(http.StatusNotImplemented, "this scheduler does not decide gangs as one in the profile "+pod.Spec.SchedulerName,
			"enable Coscheduling in its configuration, or send one Pod")
	}
	single, more, err := r.Sources.WhatIf(ctx, pod, all)
	held += more
	if err != nil || gang == nil {
		return single, held, err
	}
	answer := gang.answer(pod)
	answer.Verdicts = single.Verdicts
	return answer, held, nil
}

// answer returns the answer for a gang that a pod stands for.
func (g *GangWhatIf) answer(pod *v1.Pod) *WhatIf {
	return &WhatIf{
		Namespace: pod.Namespace, Name: pod.Name, Profile: pod.Spec.SchedulerName, Result: g.Result, Summary: g.summary(),
		Decision: g.Decision, Gang: g,
	}
}

// summary returns the result in sentences.
func (g *GangWhatIf) summary() string {
	if g.Reason != "" {
		return fmt.Sprintf("The gang %s cannot run: %s.", g.Name, strings.TrimSuffix(g.Reason, "."))
	}
	there, where := "", ""
	if g.Domain != "" {
		there, where = " there", " with "+g.Domain
	}
	nodes, victims := sets.NewString(), 0
	for _, pod := range g.Pods {
		nodes.Insert(pod.Node)
	}
	nodes.Delete("")
	for _, v := range g.Victims {
		victims += len(v.Pods)
	}
	pods := counted(len(g.Pods), "pending pod")
	if g.Found < len(g.Pods) {
		pods = fmt.Sprintf("%d of its %s", g.Found, pods)
	}
	switch {
	case g.Result == Fits:
		return fmt.Sprintf("The gang %s fits: %s would go to %s%s.", g.Name, pods, counted(nodes.Len(), "node"), where)
	case victims > 0:
		return fmt.Sprintf("The gang %s does not fit now. Preemption would evict %s from %s: then %s would go to %s%s.", g.Name,
			counted(victims, "pod"), counted(len(g.Victims), "node"), pods, counted(nodes.Len(), "node"), where)
	}
	if len(g.Domains) > 0 {
		where += ", the best domain"
	}
	text := fmt.Sprintf("The gang %s needs places for %s, and found %d%s.", g.Name, counted(g.Needed, "pod"), g.Found, where)
	if g.Unfit != "" {
		text += fmt.Sprintf(" Pod %s fits nowhere%s: %s", g.Unfit, there, noneFits(g.Decision.Nodes, g.Decision.Evaluated, g.Decision.Rejections))
	}
	if g.WhyNot != "" {
		text += " " + g.WhyNot
	}
	return text
}

// decode returns the pods of a manifest: a Pod, or a List of a gang.
func decode(content []byte) (GangRequest, error) {
	var request GangRequest
	if err := checkSize(content, "the manifest", bytesOfManifest, valuesOfManifest); err != nil {
		return request, err
	}
	list := struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}{}
	if json.Unmarshal(content, &list) != nil || list.APIVersion != "v1" || list.Kind != "List" {
		pod, err := decodePod(content)
		request.Pods = []*v1.Pod{pod}
		return request, err
	}
	refuse := func(format string, arguments ...interface{}) (GangRequest, error) {
		return GangRequest{}, answers.Refuse(http.StatusBadRequest, fmt.Sprintf(format, arguments...),
			fmt.Sprintf("send at most %d Pods with the label %s, of one namespace and schedulerName; their PodGroup may come first", podsOfManifest, gangs.Label))
	}
	names, size, values := sets.NewString(), 0, 0
	for i, item := range list.Items {
		if i == 0 {
			group := &unstructured.Unstructured{}
			if group.UnmarshalJSON(item) == nil && group.GetKind() == "PodGroup" && group.GetAPIVersion() == "scheduling.sigs.k8s.io/v1alpha1" {
				request.Group = group
				continue
			}
		}
		pod, err := decodePod(item)
		if err != nil {
			return GangRequest{}, err
		}
		copies := []*v1.Pod{pod}
		if text, found := pod.Annotations[CopiesAnnotation]; found {
			number, err := strconv.Atoi(text)
			if err != nil || number < 0 || number > podsOfManifest {
				return refuse("a pod has the annotation %s: %q", CopiesAnnotation, short(text))
			}
			delete(pod.Annotations, CopiesAnnotation)
			copies = nil
			for i := 0; i < number; i++ {
				// All else is shared: nobody changes a pod.
				copied := *pod
				copied.Name = fmt.Sprintf("%s-%d", pod.Name, i)
				copies = append(copies, &copied)
			}
		}
		if size += len(copies) * len(item); size > bytesOfGang {
			return refuse("the pods of the manifest have more than %d MiB together", bytesOfGang>>20)
		}
		if values += len(copies) * valuesOf(item); values > valuesOfGang {
			return refuse("the pods of the manifest have more than %d objects and lists together", valuesOfGang)
		}
		for _, pod := range copies {
			pod.UID = types.UID(fmt.Sprintf("what-if-%d", len(request.Pods)))
			first := pod
			if len(request.Pods) > 0 {
				first = request.Pods[0]
			}
			switch {
			case pod.Labels[gangs.Label] == "":
				return refuse("pod %s does not have the label %s", pod.Name, gangs.Label)
			case pod.Namespace != first.Namespace || pod.Labels[gangs.Label] != first.Labels[gangs.Label] || pod.Spec.SchedulerName != first.Spec.SchedulerName:
				return refuse("pod %s has another namespace, schedulerName or gang than pod %s", pod.Name, first.Name)
			case names.Has(pod.Name):
				return refuse("two pods have the name %s", pod.Name)
			case len(request.Pods) == podsOfManifest:
				return refuse("the manifest has too many pods")
			}
			names.Insert(pod.Name)
			request.Pods = append(request.Pods, pod)
		}
	}
	if len(request.Pods) == 0 {
		return refuse("the manifest has no pods")
	}
	if group, first := request.Group, request.Pods[0]; group != nil {
		if group.GetName() != first.Labels[gangs.Label] || group.GetNamespace() != "" && group.GetNamespace() != first.Namespace {
			return refuse("the PodGroup is %s/%s, but the pods are of %s/%s", short(group.GetNamespace()), short(group.GetName()),
				first.Namespace, strings.TrimSpace(first.Labels[gangs.Label]))
		}
		group.SetNamespace(first.Namespace)
	}
	return request, nil
}
