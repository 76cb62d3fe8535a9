// SPDX-License-Identifier: Apache-2.0

package util

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// evictionTimeout limits an eviction. The API server itself retries conflicts for 10 s, and the scheduling cycle waits.
const evictionTimeout = 2 * time.Second

// EvictPod deletes a pod if its PodDisruptionBudget allows that. The API server counts it at once, so that two evictions
// cannot use the same disruption. IsGone holds for its errors as well.
func EvictPod(cs kubernetes.Interface, pod *v1.Pod) error {
	options := onlyThis(pod.UID)
	// A refusal asks for another try after 10 s, which the client would wait for, and the scheduling cycle with it.
	ctx, cancel := context.WithTimeout(context.TODO(), evictionTimeout)
	defer cancel()
	return cs.CoreV1().RESTClient().Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("eviction").MaxRetries(0).
		Body(&policy.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}, DeleteOptions: &options}).
		Do(ctx).Error()
}
