"""Joining a community, with the signed request and the checks of the owner's client. The module has
no I/O.

A request reveals at least one wallet account, whose signature proves that the requester owns it.
Owners' clients refuse a request without a wallet account, even if members need no tokens.
"""

from typing import Final

from ..wire.chats import Community
from ..wire.community_payloads import CommunityRequestToJoin, RevealedAccount
from ..wire.keys import SIGNATURE_BYTES, PrivateKey, PublicKey, keccak256, recover

ADDRESS_BYTES: Final = 20
_WALLET: Final = b"reliable-channel-status: wallet that holds nothing"
_PERSONAL: Final = b"\x19Ethereum Signed Message:\n32"
"""EIP-191: what wallets sign before a message of 32 bytes."""
_V: Final = 27
"""EIP-191 signatures end with 27 or 28, those of Status with 0 or 1."""


def wallet_of(key: PrivateKey) -> PrivateKey:
    """Return the private key of the empty wallet that belongs to a chat key, always the same."""
    return PrivateKey(keccak256(_WALLET + key.reveal()))


def ethereum_address(public_key: PublicKey) -> str:
    """Return the Ethereum address of a public key, `0x` and 40 hexadecimal digits in lower case."""
    return f"0x{keccak256(public_key.uncompressed[1:])[-ADDRESS_BYTES:].hex()}"


def join_request(
    key: PrivateKey, community: Community, now_ms: int, *, display_name: str = ""
) -> CommunityRequestToJoin:
    """Return a signed request to join a community. The caller encrypts the request for
    `community.public_key` on `community.requests_topic`."""
    wallet = wallet_of(key)
    signature = wallet.sign(_PERSONAL + _revealed(key.public_key, community))
    account = RevealedAccount(
        address=ethereum_address(wallet.public_key),
        signature=signature[:-1] + bytes([signature[-1] + _V]),
        is_airdrop_address=True,
    )
    return CommunityRequestToJoin(
        clock=now_ms // 1000,
        community_id=community.public_key.compressed,
        display_name=display_name,
        revealed_accounts=(account,),
    )


def why_refused(
    request: CommunityRequestToJoin, signer: PublicKey, community: Community
) -> str | None:
    """Return the reason why the owner's client refuses a request of any user, or None."""
    if request.community_id != community.public_key.compressed:
        return "another community"
    if not request.revealed_accounts:
        return "no addresses revealed"
    for account in request.revealed_accounts:
        if _account_of(account, signer, community) != account.address.lower():
            return f"account {account.address[:50]!r} did not sign"
    return None


def _revealed(signer: PublicKey, community: Community) -> bytes:
    """What an account signs."""
    request_id = keccak256(f"{signer.hex}-{community.id}".encode())
    return keccak256(signer.compressed + community.public_key.compressed + request_id)


def _account_of(account: RevealedAccount, signer: PublicKey, community: Community) -> str | None:
    """The address that made an account's signature."""
    signature = account.signature
    if len(signature) != SIGNATURE_BYTES or signature[-1] not in (_V, _V + 1):
        return None
    status = signature[:-1] + bytes([signature[-1] - _V])
    public_key = recover(_PERSONAL + _revealed(signer, community), status)
    return None if public_key is None else ethereum_address(public_key)
