// SPDX-License-Identifier: Apache-2.0

package util

import (
	"fmt"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// onlyThis makes a request fail with a conflict if another object has the name by now.
func onlyThis(uid types.UID) metav1.DeleteOptions {
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
}

// ofAnotherUID finds both texts of the API server about a UID. Its conflicts have other reasons too.
var ofAnotherUID = regexp.MustCompile(`UID in (the )?precondition`)

// IsGone reports whether a request of DeletePod failed because the pod no longer exists. Its name may belong to another
// pod: those of a StatefulSet keep their names.
func IsGone(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsConflict(err) && ofAnotherUID.MatchString(err.Error())
}

// changesNothing reports whether a patch has at most the precondition.
func changesNothing(patch []byte, uid types.UID) bool {
	return string(patch) == "{}" || string(patch) == fmt.Sprintf(`{"metadata":{"uid":%q}}`, uid)
}
